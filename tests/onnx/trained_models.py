#!/usr/bin/env python3
"""Trained models that PyPI packages ship, through `cermet run` and onnxruntime: results equal within 1e-3 of a value and 1e-4.

    pip download --no-deps rapidocr-onnxruntime silero-vad magika    # and unpack the wheels in FOLDER
    tests/onnx/trained_models.py FOLDER [--cermet build/bin/cermet] [--device cpu]
"""

import argparse
import pathlib
import sys

import numpy as np

import runs

random = np.random.default_rng(3)


def normal(*shape):
    return random.standard_normal(shape).astype(np.float32)


def cases():
    """Files and operands."""
    yield "magika/models/standard_v3_3/model.onnx", {"bytes": random.integers(0, 257, (2, 2048)).astype(np.int32)}
    for height, width in ((160, 160), (96, 224)):
        yield "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", {"x": normal(1, 3, height, width)}
    for batch, width in ((1, 160), (2, 320)):
        yield "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", {"x": normal(batch, 3, 48, width)}
    yield "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": normal(2, 3, 48, 192)}
    for file, rates in (("silero_vad", (16000, 8000)), ("silero_vad_op18_ifless", (16000, 8000)), ("silero_vad_16k_op15", (16000,))):
        for rate in rates:
            yield f"silero_vad/data/{file}.onnx", {"input": normal(1, 576 * rate // 16000), "state": normal(2, 1, 128), "sr": np.array(rate, np.int64)}
    for file in ("silero_vad_half", "silero_vad_openvino_16k"):
        yield f"silero_vad/data/{file}.onnx", {"input": normal(1, 576), "state": normal(2, 1, 128)}
    yield "silero_vad/data/silero_vad_16k_sequence.onnx", {"input": normal(5, 576), "h": normal(1, 1, 128), "c": normal(1, 1, 128)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--cermet", default=runs.CERMET)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    failed = 0
    for file, feeds in cases():
        path = options.folder / file
        expected = runs.run_onnxruntime(path, feeds)
        try:
            found = runs.run_cermet(options.cermet, path, feeds, expected, options.device)
        except runs.Failed as error:
            failed += 1
            print("FAILED", file, error, flush=True)
            continue
        for name, array in expected.items():
            result = found.get(name)
            equal = result is not None and result.shape == array.shape and result.dtype == array.dtype and np.allclose(result, array, rtol=1e-3, atol=1e-4)
            failed += not equal
            print("ok    " if equal else "FAILED", path.name, name, array.shape, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
