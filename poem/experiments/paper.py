"""What the paper reports (Swaminathan & Joachims, ICML 2015), to be shown beside our own results."""

SETS = ("scene", "yeast", "tmc", "lyrl")

# Table 1: features, labels, training rows, test rows.
SIZES = {
    "scene": (294, 6, 1211, 1196),
    "yeast": (103, 14, 1500, 917),
    "tmc": (30438, 22, 21519, 7077),
    "lyrl": (47236, 4, 23149, 781265),
}


def _by_set(rows: dict[str, tuple[float, float, float, float]]) -> dict[str, dict[str, float]]:
    return {method: dict(zip(SETS, values, strict=True)) for method, values in rows.items()}


# Table 2: mean test Hamming loss (of the CRF, as its release shows, the MAP loss).
LOSS = _by_set(
    {
        "h0": (1.543, 5.547, 3.445, 1.463),
        "IPS(B)": (1.193, 4.635, 2.808, 0.921),
        "POEM(B)": (1.168, 4.480, 2.197, 0.918),
        "IPS(S)": (1.519, 4.614, 3.023, 1.118),
        "POEM(S)": (1.143, 4.517, 2.522, 0.996),
        "CRF": (0.659, 2.822, 1.189, 0.222),
    }
)

# Table 3: seconds for each validation run.
SECONDS = _by_set(
    {
        "IPS(B)": (2.58, 47.61, 136.34, 21.01),
        "IPS(S)": (1.65, 2.86, 49.12, 13.66),
        "POEM(B)": (75.20, 94.16, 949.95, 561.12),
        "POEM(S)": (4.71, 5.02, 276.13, 120.09),
        "CRF": (4.86, 3.28, 99.18, 62.93),
    }
)

# Table 4: mean test Hamming loss of MAP predictions.
MAP_LOSS = _by_set({"POEM(S)": (1.143, 4.065, 2.299, 0.880)})

# Figures 1 to 3: what is drawn, over replay count, fraction and temperature.
CURVES: dict[str, dict[str, dict[float, float]]] = {
    "figure1": {
        "h0": dict.fromkeys((1, 2, 4, 8, 16, 32, 64, 128, 256), 4.183),
        "CRF": dict.fromkeys((1, 2, 4, 8, 16, 32, 64, 128, 256), 2.810),
        "POEM(S)": {
            1: 4.080,
            2: 4.140,
            4: 3.982,
            8: 4.004,
            16: 3.863,
            32: 3.672,
            64: 3.515,
            128: 3.451,
            256: 3.294,
        },
    },
    "figure2": {
        "h0": {0.01: 6.530, 0.05: 5.520, 0.1: 5.058, 0.2: 4.786, 0.35: 4.605, 0.5: 4.502, 0.75: 4.405, 1.0: 4.344},
        "POEM(S)": {
            0.01: 5.560,
            0.05: 4.639,
            0.1: 4.360,
            0.2: 4.317,
            0.35: 4.016,
            0.5: 4.133,
            0.75: 4.071,
            1.0: 4.105,
        },
    },
    "figure3": {
        "h0": {0.5: 1.702, 1: 1.464, 2: 1.197, 4: 1.050, 8: 0.994, 16: 0.964, 32: 0.958},
        "POEM(S)": {0.5: 0.976, 1: 0.944, 2: 0.932, 4: 0.902, 8: 0.899, 16: 0.916, 32: 0.984},
        "h0, MAP": dict.fromkeys((0.5, 1, 2, 4, 8, 16, 32), 0.960),
    },
}
