"""A sound table in several formats, to be made a bad one."""

import pyarrow as pa

HEADER = "x,output,loss,propensity"
CSV = f"{HEADER}\n1,u,0.5,0.25\n2,v,1,0.5\n3,u,0,1\n"
SOUND = {"x": [1.0, 2.0, 3.0], "output": ["u", "v", "u"], "loss": [0.5, 1.0, 0.0], "propensity": [0.25, 0.5, 1.0]}


def write(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def table(**changes):
    return pa.table({name: column for name, column in (SOUND | changes).items() if column is not None})
