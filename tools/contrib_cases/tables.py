"""ai.onnx.ml: features of tables, linear models and trees."""

import numpy as np
from onnx import numpy_helper

from .case import Case, Values

ML = "ai.onnx.ml"


def features():
    for dtype in (np.float32, np.float64, np.int64, np.int32):
        tag = np.dtype(dtype).name
        v = Values("features" + tag)
        x = v.normal(4, 3, scale=5).astype(dtype)
        yield Case(f"Scaler_{tag}", "Scaler", [x], {"offset": [0.5, -1.0, 2.0], "scale": [2.0, 0.5, 3.0]}, domain=ML)
        yield Case(f"Scaler_{tag}_one", "Scaler", [x], {"offset": [0.5], "scale": [2.0]}, domain=ML)
        for norm in ("MAX", "L1", "L2"):
            rows = x.copy()
            rows[1] = 0
            yield Case(f"Normalizer_{tag}_{norm}", "Normalizer", [rows], {"norm": norm}, domain=ML)
        yield Case(f"ArrayFeatureExtractor_{tag}", "ArrayFeatureExtractor", [x, np.array([2, 0])], domain=ML)
        if dtype == np.float32:
            yield Case(f"LinearRegressor_{tag}", "LinearRegressor", [x], {"coefficients": [1.0, 2, 3, 4, 5, 6], "intercepts": [0.5, -0.5], "targets": 2}, domain=ML)
    v = Values("features")
    x = v.normal(4, 3)
    yield Case("Binarizer", "Binarizer", [x], {"threshold": 0.2}, domain=ML)
    yield Case("ArrayFeatureExtractor_row", "ArrayFeatureExtractor", [x[0].copy(), np.array([[2, 0]])], domain=ML)
    holes = x.copy()
    holes[0, 1] = holes[2, 2] = np.nan
    yield Case("Imputer_nan", "Imputer", [holes], {"imputed_value_floats": [1.0, 2.0, 3.0], "replaced_value_float": float("nan")}, domain=ML)
    yield Case("Imputer_ints", "Imputer", [np.array([[1, -1, 3], [-1, -1, 5]])], {"imputed_value_int64s": [7], "replaced_value_int64": -1}, domain=ML)
    yield Case("FeatureVectorizer", "FeatureVectorizer", [x, v.normal(4, 2)], {"inputdimensions": [3, 2]}, domain=ML)
    for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        yield Case(f"LinearRegressor_{transform}", "LinearRegressor", [x], {"coefficients": [1.0, 2, 3, 4, 5, 6], "targets": 2, "post_transform": transform}, domain=ML)
        yield Case(f"LinearClassifier_{transform}", "LinearClassifier", [x], {"coefficients": [float(c) for c in v.normal(9)], "intercepts": [0.1, 0.2, 0.3], "classlabels_ints": [3, 5, 9], "post_transform": transform}, (True, True), domain=ML)
    for transform in ("NONE", "LOGISTIC"):
        yield Case(f"LinearClassifier_two_{transform}", "LinearClassifier", [x], {"coefficients": [1.0, -2.0, 0.5, -1.0, 2.0, -0.5], "intercepts": [0.1, -0.1], "classlabels_ints": [0, 1], "post_transform": transform}, (True, True), domain=ML)
        yield Case(f"LinearClassifier_one_{transform}", "LinearClassifier", [x], {"coefficients": [1.0, -2.0, 0.5], "intercepts": [0.1], "classlabels_ints": [4, 7], "post_transform": transform}, (True, True), domain=ML)
    yield Case("OneHotEncoder", "OneHotEncoder", [np.array([[1, 5], [9, 7]])], {"cats_int64s": [5, 7, 1]}, domain=ML)
    yield Case("OneHotEncoder_floats", "OneHotEncoder", [np.array([1.0, 5.0, 2.0], np.float32)], {"cats_int64s": [5, 7, 1]}, domain=ML)
    ints = np.array([[1, 5, 9], [5, 7, 1]])
    yield Case("LabelEncoder_ints", "LabelEncoder", [ints], {"keys_int64s": [1, 5], "values_int64s": [10, 50], "default_int64": -3}, domain=ML)
    yield Case("LabelEncoder_to_floats", "LabelEncoder", [ints], {"keys_int64s": [1, 5, 7], "values_floats": [0.5, 1.5, 2.5]}, domain=ML)
    yield Case("LabelEncoder_floats", "LabelEncoder", [np.array([1, np.nan, 2.5, 3], np.float32)], {"keys_floats": [2.5, float("nan")], "values_int64s": [7, 8], "default_int64": 1}, domain=ML, ml=4)
    tensors = {"keys_tensor": numpy_helper.from_array(np.array([1.0, 2.0])), "values_tensor": numpy_helper.from_array(np.array([5.0, 6.0])), "default_tensor": numpy_helper.from_array(np.array([9.0]))}
    yield Case("LabelEncoder_tensors", "LabelEncoder", [np.array([2.0, 1.0, 0.0])], tensors, domain=ML, ml=4)


def grown(v, trees, columns, modes, missing):
    """Lists of nodes of random trees, of up to three levels, and their leaves as (tree, node)."""
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    leaves = []

    def add(tree, next_id, depth):
        at = next_id[0]
        next_id[0] += 1
        place = len(nodes["nodeids"])
        is_leaf = depth == 3 or (depth > 1 and v.random.random() < 0.3)
        values = dict(treeids=tree, nodeids=at, featureids=int(v.random.integers(columns)), values=float(np.float32(round(v.random.normal(), 1))),
                      modes="LEAF" if is_leaf else modes[int(v.random.integers(len(modes)))], truenodeids=0, falsenodeids=0,
                      missing_value_tracks_true=int(missing and v.random.random() < 0.5))
        for key, value in values.items():
            nodes[key].append(value)
        if is_leaf:
            leaves.append((tree, at))
        else:
            nodes["truenodeids"][place] = add(tree, next_id, depth + 1)
            nodes["falsenodeids"][place] = add(tree, next_id, depth + 1)
        return at

    for tree in range(trees):
        add(tree, [0], 0)
    return {f"nodes_{k}": value for k, value in nodes.items()}, leaves


ALL_MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def table(v, rows=6, columns=3, holes=False):
    x = np.round(v.normal(rows, columns), 1).astype(np.float32)
    if holes:
        x[0, 0] = x[2, 1] = np.nan
    return x


def regressors():
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        for modes in (["BRANCH_LEQ"], ALL_MODES):
            for targets in (1, 3):
                for base in (False, True):
                    name = f"regressor_{aggregate}_{len(modes)}_{targets}_{int(base)}"
                    v = Values(name)
                    nodes, leaves = grown(v, 3, 3, modes, len(modes) > 1)
                    attributes = dict(nodes, n_targets=targets, aggregate_function=aggregate, target_treeids=[t for t, _ in leaves], target_nodeids=[n for _, n in leaves],
                                      target_ids=[int(v.random.integers(targets)) for _ in leaves], target_weights=[float(w) for w in v.normal(len(leaves))])
                    if base:
                        attributes["base_values"] = [float(b) for b in v.normal(targets)]
                    yield Case(name, "TreeEnsembleRegressor", [table(v, holes=len(modes) > 1)], attributes, domain=ML)
    v = Values("regressor_f64")
    nodes, leaves = grown(v, 3, 3, ["BRANCH_LEQ"], False)
    splits = nodes.pop("nodes_values")
    attributes = dict(nodes, n_targets=1, target_treeids=[t for t, _ in leaves], target_nodeids=[n for _, n in leaves], target_ids=[0] * len(leaves),
                      nodes_values_as_tensor=numpy_helper.from_array(np.array(splits, np.float64)),
                      target_weights_as_tensor=numpy_helper.from_array(v.normal(len(leaves), dtype=np.float64)))
    yield Case("regressor_f64", "TreeEnsembleRegressor", [table(v).astype(np.float64)], attributes, domain=ML)


def classifiers():
    for classes, ids in ((2, "first"), (2, "second"), (2, "both"), (3, "both"), (4, "both")):
        for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
            for positive in (False, True):
                for base in (0, 1, 2):
                    if ids != "both" and transform.startswith("SOFTMAX") or base == 1 and (classes > 2 or ids == "both") or ids == "second" and base:
                        continue
                    name = f"classifier_{classes}_{ids}_{transform}_{int(positive)}_{base}"
                    v = Values(name)
                    nodes, leaves = grown(v, 3, 3, ["BRANCH_LEQ"], False)
                    pairs, of_class = leaves, [0 if ids == "first" else 1] * len(leaves)
                    if ids == "both":  # each leaf has a weight for each class
                        pairs, of_class = [p for p in leaves for _ in range(classes)], list(range(classes)) * len(leaves)
                    weights = np.abs(v.normal(len(pairs))) * 0.2 if positive else v.normal(len(pairs))
                    attributes = dict(nodes, class_treeids=[t for t, _ in pairs], class_nodeids=[n for _, n in pairs], class_ids=of_class,
                                      class_weights=[float(w) for w in weights], classlabels_int64s=[0, 1] if ids == "both" and classes == 2 else list(range(10, 10 + classes)), post_transform=transform)
                    if base:
                        attributes["base_values"] = [float(b) for b in v.normal(1 if base == 1 else classes)]
                    yield Case(name, "TreeEnsembleClassifier", [table(v)], attributes, (True, True), domain=ML)


def ensembles():
    """TreeEnsemble of ai.onnx.ml 5."""
    for dtype in (np.float32, np.float64):
        for aggregate in (0, 1, 2, 3):
            for targets in (1, 2):
                for member in (False, True):
                    if aggregate != 1 and member:
                        continue
                    name = f"ensemble_{np.dtype(dtype).name}_{aggregate}_{targets}_{int(member)}"
                    v = Values(name)
                    tensor = lambda values, kind=dtype: numpy_helper.from_array(np.array(values, kind))  # noqa: B023, E731
                    modes = [0, 1, 6 if member else 2, 0, 3]
                    attributes = dict(tree_roots=[0, 3], nodes_featureids=[0, 1, 2, 1, 0], nodes_splits=tensor([0.1, -0.3, 0.0, 0.2, 0.5]), nodes_modes=tensor(modes, np.uint8),
                                      nodes_truenodeids=[1, 0, 2, 4, 4], nodes_falsenodeids=[2, 1, 3, 6, 5], nodes_trueleafs=[0, 1, 1, 0, 1], nodes_falseleafs=[0, 1, 1, 1, 1],
                                      nodes_missing_value_tracks_true=[1, 0, 1, 0, 1], leaf_targetids=[int(t) for t in v.whole(0, targets - 1, 7)], leaf_weights=tensor(v.normal(7)),
                                      n_targets=targets, aggregate_function=aggregate, post_transform=0)
                    if member:
                        attributes["membership_values"] = tensor([0, 1, -1, np.nan])
                    rows = table(v, rows=8, holes=True).astype(dtype)
                    yield Case(name, "TreeEnsemble", [np.round(rows) if member else rows], attributes, domain=ML, ml=5, opset=21)


def cases():
    return [*features(), *regressors(), *classifiers(), *ensembles()]
