import hashlib, json, os, subprocess, sys, tempfile, unittest


class Notes(unittest.TestCase):
    def test_files(self):
        with tempfile.TemporaryDirectory() as directory:
            for number in range(300):
                path = os.path.join(directory, f"{number}.json")
                with open(path, "w") as file:
                    json.dump({"number": number, "text": "a note " * 50}, file)
            names = os.listdir(directory)
            self.assertEqual(sum(json.load(open(os.path.join(directory, name)))["number"] for name in names), 44850)

    def test_numbers(self):
        digest = b""
        for number in range(300_000):
            digest = hashlib.sha256(digest + b"%d" % number).digest()
        self.assertEqual(len(digest), 32)

    def test_programs(self):
        for number in range(10):
            output = subprocess.check_output([sys.executable, "-S", "-c", f"print({number})"])
            self.assertEqual(int(output), number)
