"""Import ONNX Runtime; Python goes on after the complaint with half a module, so whatever is complained of counts."""

import subprocess
import sys

CODE = "import onnxruntime; print('providers:', *onnxruntime.get_available_providers())"
done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
print(done.stdout + done.stderr, end="")
sys.exit(done.returncode or bool(done.stderr.strip()))
