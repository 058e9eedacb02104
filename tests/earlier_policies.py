"""Policy files with other metadata, such as those from before the checksum."""

import json

from safetensors.numpy import load, save


def with_metadata(path, change):
    """Write a policy file again, with the metadata that ``change`` makes of the old."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    about = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["poem"])
    path.write_bytes(save(load(content), metadata={"poem": json.dumps(change(about))}))
    return path


def without_checksum(path):
    """Write a policy file again as poem wrote it before there was a checksum."""

    def earlier(about):
        return {key: value for key, value in about.items() if key != "checksum"} | {"version": 4}

    return with_metadata(path, earlier)
