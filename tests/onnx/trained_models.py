#!/usr/bin/env python3
"""Trained models that PyPI packages ship, through `cermet run` and onnxruntime: results equal within 1e-3 of a value and 1e-4.

    pip download --no-deps rapidocr-onnxruntime silero-vad magika    # and unpack the wheels in FOLDER
    tests/onnx/trained_models.py FOLDER [--cermet build/bin/cermet] [--device cpu]
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime as ort

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--cermet", default=str(pathlib.Path(__file__).resolve().parents[2] / "build/bin/cermet"))
parser.add_argument("--device", default="cpu")
options = parser.parse_args()
random = np.random.default_rng(3)
failed = 0


def f(*shape):
    return random.standard_normal(shape).astype(np.float32)


def case(path, feeds):
    global failed
    session = ort.InferenceSession(options.folder / path, providers=["CPUExecutionProvider"])
    expected = session.run(None, feeds)
    with tempfile.TemporaryDirectory() as folder:
        command = [options.cermet, "run", str(options.folder / path), "--output", folder + "/out", "--device", options.device]
        for name, array in feeds.items():
            np.save(f"{folder}/{name}.npy", array)
            command += ["--input", f"{name}={folder}/{name}.npy"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            failed += 1
            return print("FAILED", path, done.stderr.strip()[-300:])
        for output, array in zip(session.get_outputs(), expected):
            found = np.load(f"{folder}/out/" + re.sub("/", "_", output.name) + ".npy")
            equal = found.shape == array.shape and found.dtype == array.dtype and np.allclose(found, array, rtol=1e-3, atol=1e-4)
            failed += not equal
            print("ok    " if equal else "FAILED", path.split("/")[-1], output.name, array.shape)


case('magika/models/standard_v3_3/model.onnx',{'bytes':random.integers(0,257,(2,2048)).astype(np.int32)})
for h,w in ((160,160),(96,224)): case('rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx',{'x':f(1,3,h,w)})
case('rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx',{'x':f(1,3,48,160)})
case('rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx',{'x':f(2,3,48,320)})
case('rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx',{'x':f(2,3,48,192)})
for p in ('silero_vad.onnx','silero_vad_op18_ifless.onnx','silero_vad_16k_op15.onnx'):
    for sr in ((16000,8000) if p!='silero_vad_16k_op15.onnx' else (16000,)):
        n=576 if sr==16000 else 288
        case('silero_vad/data/'+p,{'input':f(1,n),'state':f(2,1,128),'sr':np.array(sr,np.int64)})
case('silero_vad/data/silero_vad_half.onnx',{'input':f(1,576),'state':f(2,1,128)})
case('silero_vad/data/silero_vad_openvino_16k.onnx',{'input':f(1,576),'state':f(2,1,128)})
case('silero_vad/data/silero_vad_16k_sequence.onnx',{'input':f(5,576),'h':f(1,1,128),'c':f(1,1,128)})
sys.exit(failed > 0)
