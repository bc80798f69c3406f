#!/usr/bin/env python3
"""The page of `cermet explain` in a real browser, offline, from a file: it loads without a word, finds what is searched for, shows what is clicked, and is
drawn in light and dark. usage: explain_page.py CERMET [--keep FOLDER] [MODEL...]   (run by script/test-long browser)"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from browser import Browser, pixels  # noqa: E402

root = pathlib.Path(__file__).resolve().parents[2]
arguments = None


def make_page(folder, name, options):
    page = pathlib.Path(folder) / (name + ".html")
    subprocess.run([arguments.cermet, "explain", *options, "-o", str(page)], check=True, cwd=root, stderr=subprocess.DEVNULL)
    return page


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="cermet-pages.")
        cls.browser = Browser(shutil.which("chromium") or "chromium")
        models = [(pathlib.Path(m).stem, [m]) for m in arguments.models]
        cls.pages = [make_page(cls.folder.name, name, options) for name, options in
                     [("demo", ["models/demo", "--device", "null"]), ("classifier", ["models/demo_onnx/classifier.onnx", "--dim", "batch=2"])] + models]

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def each(self):
        for page in self.pages:
            with self.subTest(page=page.stem):
                self.browser.open(page.as_uri())
                yield page
                self.assertEqual(self.browser.complaints(), [])

    def keep(self, name, png):
        if arguments.keep:
            pathlib.Path(arguments.keep).mkdir(parents=True, exist_ok=True)
            (pathlib.Path(arguments.keep) / (name + ".png")).write_bytes(png)

    def test_draws_every_block(self):
        for _ in self.each():
            for which in ("before", "after"):
                self.browser.click(f"document.querySelector('[data-side={which}]')")
                if self.browser.run("plan.repeats.length") > 0:
                    self.browser.click("document.querySelector('#fold')")
                self.assertEqual(self.browser.run("document.querySelectorAll('.node:not(.stub):not(.view):not(.end)').length"), self.browser.run("plan.launches"))
                drawn = self.browser.run("nodes.filter(n => !Number.isFinite(n.x) || !Number.isFinite(n.y)).length")
                self.assertEqual(drawn, 0, "every block has a place")
                overlaps = self.browser.run("""(() => { const rows = {}; nodes.forEach(n => (rows[n.rank] = rows[n.rank] || []).push(n));
                    return Object.values(rows).filter(row => { row.sort((a, b) => a.x - b.x);
                        return row.some((n, i) => i && n.x - row[i - 1].x < (n.width + row[i - 1].width) / 2); }).length; })()""")
                self.assertEqual(overlaps, 0, "no block covers another")
                upwards = self.browser.run("edges.filter(e => e.to.rank <= e.from.rank).length")
                self.assertEqual(upwards, 0, "values go down")

    def test_search_finds_a_block_and_a_click_shows_it(self):
        for page in self.each():
            name = self.browser.run("(() => { const b = plan.blocks.filter(b => !b.view); return b[b.length - 1].ops[0].name; })()")
            self.browser.click("document.querySelector('#search')")
            self.browser.type(name)
            self.assertGreater(self.browser.run("document.querySelectorAll('.node.matched').length"), 0)
            self.browser.key("Enter", 13)
            text = self.browser.run("document.querySelector('#selection').innerText")
            self.assertIn(name, text)
            self.assertIn("kernel", text)
            self.keep(page.stem + "-found", self.browser.screenshot())
            self.browser.run("document.querySelector('#selection').hidden = true")
            self.browser.click("document.querySelector('.node.matched rect')")
            self.assertFalse(self.browser.run("document.querySelector('#selection').hidden"))
            self.assertIn(name, self.browser.run("document.querySelector('#selection').innerText"))

    def test_an_edge_says_why(self):
        for page in self.each():
            number = self.browser.run("""edges.findIndex(e => e.values.some(v => v.reason !== undefined))""")
            if number < 0:
                continue
            self.browser.run(f"edges[{number}].drawn.querySelector('.hit').dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
            why = self.browser.run("document.querySelector('#selection .why').innerText")
            self.assertIn(why.split(":")[0], ["view", "mode", "limit", "overwritten", "cycle", "table", "result", "readers", "kernels", "order"])
            self.keep(page.stem + "-edge", self.browser.screenshot())

    def test_kernels_sort(self):
        for _ in self.each():
            self.browser.click("document.querySelector('#kernels th[data-key=blocks]')")
            column = self.browser.run("[...document.querySelectorAll('#kernels tr')].slice(1).map(r => Number(r.children[1].innerText))")
            self.assertEqual(column, sorted(column, reverse=True))
            self.browser.click("document.querySelector('#kernels th[data-key=blocks]')")
            column = self.browser.run("[...document.querySelectorAll('#kernels tr')].slice(1).map(r => Number(r.children[1].innerText))")
            self.assertEqual(column, sorted(column))

    def test_light_and_dark_are_drawn(self):
        shades = {}
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            for page in self.each():
                png = self.browser.screenshot()
                self.keep(f"{page.stem}-{scheme}", png)
                rows = pixels(png)
                colours = {}
                for row in rows[::3]:
                    for colour in row[::3]:
                        colours[colour] = colours.get(colour, 0) + 1
                total = sum(colours.values())
                self.assertGreater(len(colours), 40)
                self.assertLess(max(colours.values()) / total, 0.97)
                shades[page.stem, scheme] = sum(sum(c) * n for c, n in colours.items()) / total / 3
        for page in self.pages:
            self.assertGreater(shades[page.stem, "light"], 170)
            self.assertLess(shades[page.stem, "dark"], 90)
        self.browser.prefer("light")

    def test_thousands_of_blocks_take_no_time(self):
        """3,000 blocks in two columns with skips."""
        self.browser.open(self.pages[0].as_uri())
        took = self.browser.run("""(() => {
          const block = i => ({ops: [{op: 'linear', name: 'v' + i, type: 'f32[4]', scope: '', attributes: ''}], mapping: 'Many-to-Many', kernel: 'k', config: '', bytes: 1, operations: 1, seconds: 1, least: 1, reads: [], writes: []});
          const edge = (a, b) => ({from: a, to: b, value: 'v' + a, type: 'f32[4]', bytes: 16, reason: 0});
          const blocks = [...Array(3000).keys()].map(block), edges = [];
          for (let i = 2; i < 3000; ++i) { edges.push(edge(i - 2, i)); if (i % 7 === 0 && i > 12) edges.push(edge(i - 12, i)); }
          graph.after = {...graph.after, blocks, edges, repeats: [], inputs: [], outputs: [], reasons: [{why: 'kernels', text: ''}], launches: 3000};
          side = 'after';
          const begin = performance.now();
          showPlan();
          return performance.now() - begin; })()""")
        print(f"3,000 blocks: {took:.0f} ms", file=sys.stderr)
        self.assertLess(took, 2000 * arguments.slack)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("cermet", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--keep", help="folder for screenshots")
    parser.add_argument("--slack", type=float, default=1, help="how many times slower this machine may be")
    parser.add_argument("--only")
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_intermixed_args()
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Page)
    if arguments.only:
        suite = unittest.TestSuite([Page(arguments.only)])
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
