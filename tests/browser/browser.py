"""A headless Chromium that is driven over a pipe by its own protocol: no package, no port, no network."""
import json
import os
import struct
import subprocess
import tempfile
import time
import zlib
import base64


class Browser:
    def __init__(self, program, width=1440, height=900):
        self.profile = tempfile.TemporaryDirectory(prefix="cermet-browser.")
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()

        def wire():  # the browser reads commands from 3 and writes answers to 4
            os.dup2(to_read, 100)
            os.dup2(from_write, 101)
            os.dup2(100, 3)
            os.dup2(101, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe", "--no-first-run",
             "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self.profile.name}",
             f"--window-size={width},{height}", "about:blank"],
            preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.buffer, self.next_id, self.events = b"", 1, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def read(self):
        while b"\0" not in self.buffer:
            part = os.read(self.from_read, 1 << 16)
            if not part:
                raise RuntimeError("the browser has gone")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        number, self.next_id = self.next_id, self.next_id + 1
        message = {"id": number, "method": method, "params": params}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def open(self, url, seconds=120):
        self.events = []
        begin = time.time()
        self.call("Page.navigate", url=url)
        while self.run("document.body && document.body.dataset.ready || ''") != "yes":
            if time.time() - begin > seconds:
                raise RuntimeError(f"{url}: not ready after {seconds} s; {self.complaints()}")
            time.sleep(0.05)

    def run(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def complaints(self):
        """What the console said, what was thrown, and what was asked of a network."""
        list_ = []
        for event in self.events:
            method, params = event["method"], event["params"]
            if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                list_.append(str(params["args"]))
            if method == "Runtime.exceptionThrown":
                list_.append(str(params["exceptionDetails"].get("exception", params)))
            if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                list_.append(params["entry"]["text"])
            if method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:")):
                list_.append("asked for " + params["request"]["url"])
        return list_

    def click(self, selector):
        """A real click in the middle of the first element that the selector names."""
        x, y = self.run(f"(() => {{ const b = {selector}.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def key(self, name, code):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, text="\r" if name == "Enter" else "")

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except RuntimeError:
            pass
        self.process.wait(timeout=30)
        self.profile.cleanup()


def pixels(png):
    """Rows of (r, g, b) of an 8-bit PNG without interlacing."""
    at, body, width, height, channels = 8, b"", 0, 0, 3
    while at < len(png):
        (size,) = struct.unpack(">I", png[at:at + 4])
        kind = png[at + 4:at + 8]
        chunk = png[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", chunk[:10])
            channels = {2: 3, 6: 4}[colour]
        if kind == b"IDAT":
            body += chunk
        at += 12 + size
    raw, stride, rows, before = zlib.decompress(body), width * channels, [], None
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        before = before or bytearray(stride)
        for i in range(stride):
            left = line[i - channels] if i >= channels else 0
            up, corner = before[i], before[i - channels] if i >= channels else 0
            if kind == 1:
                line[i] = (line[i] + left) & 255
            elif kind == 2:
                line[i] = (line[i] + up) & 255
            elif kind == 3:
                line[i] = (line[i] + (left + up) // 2) & 255
            elif kind == 4:
                p = left + up - corner
                line[i] = (line[i] + min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]) & 255
        rows.append([tuple(line[i:i + 3]) for i in range(0, stride, channels)])
        before = line
    return rows
