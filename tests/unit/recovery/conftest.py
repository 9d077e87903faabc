import sys
from pathlib import Path

# Beside the tests and not part of the package: `import recovery_network`.
sys.path.insert(0, str(Path(__file__).parent))
