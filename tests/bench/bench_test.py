"""Checks the Python of bench/ and tools/ that needs no GPU: rows, rivals' protocol, comparison of builds, the page and its plots.

usage: python3 tests/bench/bench_test.py
"""
import json
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / 'bench'), str(ROOT / 'tools')]
import cost_models  # noqa: E402
import gpu_compare  # noqa: E402
import gpu_measure  # noqa: E402
import gpu_page  # noqa: E402
import gpu_rows  # noqa: E402
import plot_trace  # noqa: E402
import plots  # noqa: E402
import scaling_model  # noqa: E402
import two_gpu_records  # noqa: E402

FAKE_CERMET = '''#!/usr/bin/env python3
import json, pathlib, sys
speed = float(pathlib.Path(__file__).with_name('speed').read_text())
if '--help' in sys.argv:
    print('--new-tokens')
else:
    calls = json.loads(pathlib.Path(sys.argv[3]).read_text())
    if '--limits' in sys.argv:
        print(json.dumps({'limits': {'read_bytes_per_second': 4e12}}))
    for call in calls:
        if call['op'] == 'moe_permute':
            print(json.dumps({'name': call['name'], 'error': 'declined'}))
        else:
            print(json.dumps({'name': call['name'], 'kernel': 'fake', 'median_seconds': 1e-5 * speed, 'bytes': 1e6, 'operations': 1e9,
                              'bytes_per_second': 1e11, 'operations_per_second': 1e14}))
'''
FAKE_RIVAL = '''
import json, sys
print(json.dumps({'version': 'Fake 1'}), flush=True)
for line in sys.stdin:
    seconds, kind = line.split()[:2]
    if kind == 'decode':
        sys.exit(3)
    print(json.dumps({'error': 'refused'} if kind == 'grouped' else {'seconds': 2e-5, 'method': 'fake ' + seconds, 'sets': 2}), flush=True)
'''


def fake_build(folder, speed):
    program = pathlib.Path(folder) / 'bin/cermet'
    program.parent.mkdir(parents=True)
    program.write_text(FAKE_CERMET)
    program.chmod(0o755)
    (program.parent / 'speed').write_text(str(speed))
    return gpu_measure.Build(folder)


class Rows(unittest.TestCase):
    def test_names_are_unique_and_every_goal_is_known(self):
        rows = [*gpu_rows.operator_rows(), *gpu_rows.model_rows()]
        names = [row['name'] for row in rows]
        self.assertEqual(len(names), len(set(names)))
        for row in rows:
            if 'goal' in row:
                self.assertIn(next(iter(row['goal'])), ('rival', 'seconds', 'bytes_per_second', 'operations_per_second'), row['name'])
                if 'rival' in row['goal']:
                    self.assertTrue(row['rival'].split()[0], row['name'])
        for row in rows:
            for part in row.get('sum_of', ()):
                self.assertIn(part, names)

    def test_goal_against_the_fastest_rival(self):
        row = {'goal': {'rival': 1.0}, 'seconds': 2.0, 'rivals': {'a': {'seconds': 3.0}, 'b': {'seconds': 1.5}, 'c': {'error': 'refused'}}}
        self.assertEqual(gpu_rows.fastest_rival(row)[0], 'b')
        self.assertEqual(gpu_rows.goal_of(row), ('the fastest rival', False))
        self.assertEqual(gpu_rows.goal_of({**row, 'seconds': 1.0})[1], True)
        self.assertIsNone(gpu_rows.goal_of({'goal': {'rival': 1.0}, 'seconds': 1.0})[1])
        self.assertEqual(gpu_rows.goal_of({'goal': {'bytes_per_second': 4e12}, 'bytes_per_second': 4.2e12}), ('4 TB/s', True))


class Measuring(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.rival = gpu_measure.Rival('Fake', [sys.executable, '-c', FAKE_RIVAL])

    def tearDown(self):
        self.rival.close()
        self.folder.cleanup()

    def test_operators_rivals_and_sums(self):
        rows = gpu_rows.operator_rows()
        limits = gpu_measure.measure_operators(fake_build(self.folder.name, 1), [self.rival], rows, 0)
        by_name = {row['name']: row for row in rows}
        self.assertEqual(limits, {'read_bytes_per_second': 4e12})
        self.assertEqual(self.rival.version, 'Fake 1')
        self.assertEqual(by_name['bf16 M16 N6144 K4096']['rivals'], {'Fake': {'seconds': 2e-5, 'method': 'fake 0', 'sets': 2}})
        self.assertEqual(by_name['bf16 M2048 N6144 K4096']['rivals']['Fake']['method'], f'fake {gpu_rows.SUSTAINED}', 'as long as Cermet')
        self.assertEqual(by_name['grouped bf16 T8 N1536 K2048']['rivals']['Fake'], {'error': 'refused'})
        self.assertEqual(by_name['permute T8']['error'], 'declined')
        self.assertEqual(by_name['mixture block T8']['error'], 'a part was not measured')
        decode = [row['rivals']['Fake'] for row in rows if row['group'] == 'decode attention']
        self.assertTrue(all('error' in answer for answer in decode), 'a rival that ended answers with errors')

    def test_sum_of_parts(self):
        rows = [row for row in gpu_rows.operator_rows() if row['group'] in ('mixtures', 'parts of a mixture')]
        for row in rows:
            if row.get('op') == 'moe_permute':
                row['op'] = 'gather'
        gpu_measure.measure_operators(fake_build(self.folder.name, 1), [], rows, 0)
        block = next(row for row in rows if row['name'] == 'mixture block T8')
        self.assertAlmostEqual(block['seconds'], 7e-5)
        self.assertAlmostEqual(block['bytes_per_second'] / 1e11, 1)


class Comparing(unittest.TestCase):
    def test_verdict(self):
        self.assertEqual(gpu_compare.verdict([1.0, 1.001], [1.002, 1.001])[2], 'same')
        self.assertEqual(gpu_compare.verdict([1.0, 1.001], [1.03, 1.03])[2], 'slower')
        self.assertEqual(gpu_compare.verdict([1.0, 1.08], [1.04, 1.11])[2], 'unclear')
        self.assertEqual(gpu_compare.verdict([1.0, 1.0], [0.9, 0.9])[2], 'faster')

    def test_a_slower_build_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            builds = [fake_build(folder + '/a', 1), fake_build(folder + '/b', 1.05)]
            rows = [row for row in gpu_rows.operator_rows() if row['group'] == 'prefill attention']
            self.assertEqual(sorted(gpu_compare.report(gpu_compare.compare_operators(rows, builds, 0))), sorted(row['name'] for row in rows))
            self.assertEqual(gpu_compare.report(gpu_compare.compare_operators(rows, [builds[0], builds[0]], 0)), [])


class Page(unittest.TestCase):
    def test_a_timeline_is_drawn_from_its_shortest_pass(self):
        def event(name, category, pid, tid, start, duration, scope=''):
            return {'name': name, 'cat': category, 'ph': 'X', 'pid': pid, 'tid': tid, 'ts': start, 'dur': duration, 'args': {'scope': scope}}

        events = [{'name': 'process_name', 'ph': 'M', 'pid': 2, 'tid': 0, 'args': {'name': 'super-kernel decode'}}]
        events += [{'name': 'thread_name', 'ph': 'M', 'pid': 2, 'tid': row, 'args': {'name': f'thread {row}'}} for row in (0, 1)]
        for start, duration in ((0, 50), (100, 20)):
            events += [event('decode', 'pass', 1, 1, start, 90), event('gemm <x>', 'task', 2, 0, start + 5, duration, 'layers.1.mlp'),
                       event('wait', 'wait', 2, 1, start + 5, 2, 'layers.1.mlp'), event('norm', 'task', 2, 1, start + 7, 8, 'layers.1'),
                       event('other', 'task', 2, 1, start + 60, 8, 'layers.10')]
        passes = plot_trace.passes_of(events, 'layers.1', 'decode')
        self.assertEqual([len(tasks) for tasks in passes], [3, 3])
        drawing = plot_trace.chart('layers.1', passes[1])
        self.assertEqual(xml.etree.ElementTree.fromstring(drawing).tag, '{http://www.w3.org/2000/svg}svg')
        self.assertIn('width="720.00"', drawing, 'the longest task is as wide as the chart')
        self.assertIn('gemm &lt;x&gt;: 20.0 us', drawing)
        self.assertNotIn('other', drawing)
        self.assertEqual(plot_trace.passes_of(events, 'layers.1', 'prefill'), [])
        text = plot_trace.text_chart('layers.1', passes[1], columns=20).splitlines()
        self.assertEqual(text[:3], ['layers.1, 20.0 us', '    thread 0 |AAAAAAAAAAAAAAAAAAAA|', '    thread 1 |..BBBBBBBBB         |'])
        self.assertEqual([line.split() for line in text[4:]], [['A', 'gemm', '<x>', '0.00', '0.00', '20.00', '20.00', '20.00'], ['B', 'norm', '2.00', '2.00', '10.00', '10.00', '10.00']])

    def test_plots_are_svg_and_bars_have_the_right_length(self):
        drawing = plots.bar_chart('title <&>', 'us', [('row', {'Cermet': 50.0, 'rival': 100.0}, 25.0)], more_is_better=False)
        widths = {rect.get('class'): float(rect.get('width')) for rect in xml.etree.ElementTree.fromstring(drawing).iter('{http://www.w3.org/2000/svg}rect')
                  if rect.get('height') == '12'}
        self.assertEqual(widths, {'f0': 280.0, 'f1': 560.0})
        self.assertEqual([plots.round_top(value) for value in (0.7, 1, 3, 4.4, 790, 1200)], [0.8, 1, 4, 5, 800, 2000])

    def test_logarithmic_panels_have_scales_of_their_own(self):
        grid, share = plots.logarithmic_scale([3.0, 40.0])
        self.assertEqual(grid, [2, 5, 10, 20, 50])
        self.assertAlmostEqual(share(10), 0.5)
        drawing = plots.line_chart('title', 'x', [('small', ['a', 'b'], {'Cermet': [3.0, 4.0]}), ('large', ['a'], {'Cermet': [300.0]})], logarithmic=True)
        labels = [label.text for label in xml.etree.ElementTree.fromstring(drawing).iter('{http://www.w3.org/2000/svg}text') if label.get('text-anchor') == 'end']
        self.assertEqual(labels, ['2', '5', '200', '500'])

    def test_collectives_of_two_gpus_are_read_by_way(self):
        times = two_gpu_records.read_routes('  all_reduce nccl          1.00 KiB   5.86 us  166.7 MiB  166.7 MiB\n'
                                            '  all_reduce one-shot      1.00 KiB   3.64 us  268.2 MiB  268.2 MiB\n'
                                            '  all_reduce one-shot      256.0 MiB  1.5 ms   258.3 GiB  258.3 GiB\n  all_reduce      one-shot  3.86 us  258.6 GiB/s\n')
        self.assertEqual(times, {'all_reduce': {'nccl': {1024: 5.86e-6}, 'one-shot': {1024: 3.64e-6, 256 << 20: 1.5e-3}}})
        self.assertEqual(two_gpu_records.fastest(times['all_reduce'], ('nccl', 'one-shot')), [(1024, 3.64e-6, 'one-shot'), (256 << 20, 1.5e-3, 'one-shot')])

    def test_the_recorded_page_is_up_to_date(self):
        import performance_page
        for path, text in performance_page.files().items():
            self.assertEqual(path.read_text(), text, f'{path}: run tools/performance_page.py')
        for drawing in (ROOT / 'docs/images').glob('*.svg'):
            xml.etree.ElementTree.parse(drawing)

    def test_limit_is_the_longer_of_reading_and_computing(self):
        limits = {'overlapped_graph_node_seconds': 1e-6, 'reads': [{'bytes': 1000, 'seconds': 2e-6}], 'read_bytes_per_second': 1e9, 'bf16_operations_per_second': 1e12}
        row = {'op': 'linear', 'problem': 'linear(bf16[1, 2])', 'bytes': 500, 'operations': 0}
        self.assertAlmostEqual(gpu_page.operator_limit(limits, row), 1.5e-6)
        self.assertAlmostEqual(gpu_page.operator_limit(limits, {**row, 'operations': 1e7}), 1e-5)
        self.assertAlmostEqual(gpu_page.operator_limit(limits, {**row, 'bytes': 4000}), 4e-6)

    def test_every_record_is_one_of_this_suite(self):
        for path in (ROOT / 'bench/results/h200').glob('*.json'):
            record = json.loads(path.read_text())
            for row in record['operators'] + record['models']:
                self.assertTrue('seconds' in row or 'error' in row or 'sum_of' in row, row['name'])


class CostModels(unittest.TestCase):
    def test_modelled_times_are_compared_with_the_kernels_and_the_librarys(self):
        explained = {'kernel': 'cublaslt.linear', 'config': 'default', 'candidates': [
            {'kernel': 'gemm.linear.hopper', 'configs': [{'config': 'default', 'modelled_seconds': 2e-5}, {'config': 'tile_m=64', 'modelled_seconds': 1e-5}]},
            {'kernel': 'gemm.linear.tensor', 'configs': []},
            {'kernel': 'cublaslt.linear', 'configs': [{'config': 'default', 'modelled_seconds': 1e-5}]}]}
        row = {'name': 'a', 'op': 'linear', 'shape': 'x=bf16[2,8] w=bf16[4,8]', 'kernel': 'gemm.linear.hopper', 'seconds': 1e-5,
               'rivals': {'cuBLASLt': {'seconds': 2e-5}}}
        own, cost_models.explain = cost_models.explain, lambda row, device: explained
        try:
            families, changes = cost_models.ratios_of([row, {**row, 'config': 'tile_m=64', 'rivals': {}}], 'null:sm_90', False)
        finally:
            cost_models.explain = own
        self.assertEqual({name: [ratio for ratio, _ in ratios] for name, ratios in families.items()},
                         {'gemm.linear.hopper bf16': [2.0, 1.0], 'cublaslt.linear bf16': [0.5]})
        self.assertEqual([(kernel, seconds) for _, kernel, _, seconds in changes], [('cublaslt.linear', 2e-5), ('cublaslt.linear', None)])


class Scaling(unittest.TestCase):
    def test_constants_of_exact_calls_are_found(self):
        points = [(size, 7e-6 + size * scaling_model.factor('all_gather', 2) / 2e11) for size in (1 << 13, 1 << 18, 1 << 24)]
        alpha, beta = scaling_model.fit(points, 'all_gather')
        self.assertAlmostEqual(alpha * 1e6, 7, 6)
        self.assertAlmostEqual(beta / 2e11, 1, 6)

    def test_one_gpu_takes_what_was_measured(self):
        record, routes, steps = scaling_model.read_records()
        points, _ = scaling_model.read_points(routes, steps)
        self.assertEqual({op: len(rows) for op, rows in points.items()}, {**dict.fromkeys(scaling_model.OPERATORS, 10), scaling_model.SUM_AND_NORM: 4})
        row = record['models'][0]
        config = json.loads((ROOT / row['config']).read_text())
        for bound in scaling_model.bounds(row, config, points, 1, record['limits']['read_bytes_per_second']):
            self.assertAlmostEqual(bound, row['seconds'], 9)
        self.assertEqual(scaling_model.prefill(0.1, 4096, 2048, config, scaling_model.Links(points, True), 1), 0.1)

    def test_weights_of_a_batch_are_read_once(self):
        row = {'seconds': 4.0, 'batch': 8, 'decode': {'decode_weight_bytes_per_token': 0.25}}
        config = {'hidden_size': 1, 'num_hidden_layers': 1, 'vocab_size': 1}
        free = {op: [(1, 1e-12), (1 << 20, 1.1e-12)] for op in scaling_model.OPERATORS}
        for bound, expected in zip(scaling_model.bounds(row, config, free, 2, 1.0), (2, 3)):
            self.assertAlmostEqual(bound, expected, 6)

    def test_the_page_and_its_plot_are_those_of_the_records(self):
        text, plot = scaling_model.page(*scaling_model.read_records())
        self.assertEqual(scaling_model.PAGE.read_text(), text)
        self.assertEqual(scaling_model.PLOT.read_text(), plot)
        xml.etree.ElementTree.fromstring(plot)


if __name__ == '__main__':
    unittest.main()
