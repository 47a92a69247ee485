PRAGMA application_id = 1701078885;
PRAGMA user_version = 15;
CREATE TABLE profiles (
            fingerprint TEXT NOT NULL,
            executor TEXT NOT NULL,
            variant TEXT NOT NULL,
            batch_size INTEGER NOT NULL,
            quantiles_ns TEXT NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, executor, variant, batch_size)
        ) WITHOUT ROWID;
CREATE TABLE cameras (
            camera TEXT PRIMARY KEY,
            hello TEXT NOT NULL,
            first_seen_ms INTEGER NOT NULL,
            last_seen_ms INTEGER NOT NULL
        , overrides TEXT NOT NULL DEFAULT '{}') WITHOUT ROWID;
CREATE TABLE events (
            id INTEGER PRIMARY KEY,
            at_ms INTEGER NOT NULL,
            level TEXT NOT NULL,
            camera TEXT,
            text TEXT NOT NULL
        );
CREATE TABLE history_names (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    camera TEXT NOT NULL UNIQUE
);
CREATE TABLE history_minute (
        at INTEGER NOT NULL,
        name INTEGER NOT NULL,
        covered_ms INTEGER NOT NULL, connected_ms INTEGER NOT NULL, captured INTEGER NOT NULL, accepted INTEGER NOT NULL, on_time INTEGER NOT NULL, late INTEGER NOT NULL, mismatches INTEGER NOT NULL, dropped_sender INTEGER NOT NULL, dropped_queue INTEGER NOT NULL, dropped_infeasible INTEGER NOT NULL, dropped_invalid INTEGER NOT NULL, dropped_overload INTEGER NOT NULL, dropped_failed INTEGER NOT NULL, dropped_departed INTEGER NOT NULL, dropped_shutdown INTEGER NOT NULL, width_px_sum INTEGER NOT NULL, received_bytes INTEGER NOT NULL, measured_bits INTEGER NOT NULL, measured_busy_us INTEGER NOT NULL, estimated_sum_bps INTEGER NOT NULL, estimated_count INTEGER NOT NULL,
        measured_least_bps INTEGER,
        estimated_least_bps INTEGER,
        measured_most_bps INTEGER,
        estimated_most_bps INTEGER,
        variants TEXT NOT NULL,
        latencies BLOB NOT NULL, tracked TEXT NOT NULL DEFAULT '{}', dropped_plan INTEGER NOT NULL DEFAULT 0, classes TEXT NOT NULL DEFAULT '{}',
        PRIMARY KEY (at, name)
    ) WITHOUT ROWID;
CREATE TABLE history_hour (
        at INTEGER NOT NULL,
        name INTEGER NOT NULL,
        covered_ms INTEGER NOT NULL, connected_ms INTEGER NOT NULL, captured INTEGER NOT NULL, accepted INTEGER NOT NULL, on_time INTEGER NOT NULL, late INTEGER NOT NULL, mismatches INTEGER NOT NULL, dropped_sender INTEGER NOT NULL, dropped_queue INTEGER NOT NULL, dropped_infeasible INTEGER NOT NULL, dropped_invalid INTEGER NOT NULL, dropped_overload INTEGER NOT NULL, dropped_failed INTEGER NOT NULL, dropped_departed INTEGER NOT NULL, dropped_shutdown INTEGER NOT NULL, width_px_sum INTEGER NOT NULL, received_bytes INTEGER NOT NULL, measured_bits INTEGER NOT NULL, measured_busy_us INTEGER NOT NULL, estimated_sum_bps INTEGER NOT NULL, estimated_count INTEGER NOT NULL,
        measured_least_bps INTEGER,
        estimated_least_bps INTEGER,
        measured_most_bps INTEGER,
        estimated_most_bps INTEGER,
        variants TEXT NOT NULL,
        latencies BLOB NOT NULL, tracked TEXT NOT NULL DEFAULT '{}', dropped_plan INTEGER NOT NULL DEFAULT 0, classes TEXT NOT NULL DEFAULT '{}',
        PRIMARY KEY (at, name)
    ) WITHOUT ROWID;
CREATE TABLE "accuracy_reports" (
            family TEXT NOT NULL,
            variant TEXT NOT NULL,
            content TEXT NOT NULL,
            kind TEXT NOT NULL,
            accuracy REAL NOT NULL,
            error REAL NOT NULL,
            source TEXT NOT NULL,
            pictures INTEGER NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            dominated TEXT NOT NULL,
            details TEXT NOT NULL,
            PRIMARY KEY (family, variant)
        ) WITHOUT ROWID;
CREATE TABLE learned_work (
            fingerprint TEXT NOT NULL,
            variant TEXT NOT NULL,
            app TEXT NOT NULL,
            work BLOB NOT NULL,
            learned_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, variant, app)
        ) WITHOUT ROWID;
CREATE TABLE learned_drift (
            fingerprint TEXT NOT NULL,
            executor TEXT NOT NULL,
            variant TEXT NOT NULL,
            factor REAL NOT NULL,
            learned_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, executor, variant)
        ) WITHOUT ROWID;
CREATE TABLE interference (
            fingerprint TEXT NOT NULL,
            executor TEXT NOT NULL,
            variant TEXT NOT NULL,
            beside TEXT NOT NULL,
            others INTEGER NOT NULL,
            neighbours TEXT NOT NULL,
            factor REAL NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, executor, variant, beside, others)
        ) WITHOUT ROWID;
CREATE TABLE core_factors (
            fingerprint TEXT NOT NULL,
            executor TEXT NOT NULL,
            variant TEXT NOT NULL,
            batch_size INTEGER NOT NULL,
            threads INTEGER NOT NULL,
            factor REAL NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, executor, variant, batch_size, threads)
        ) WITHOUT ROWID;
CREATE TABLE cascade_evidence (
            camera TEXT PRIMARY KEY,
            decider TEXT NOT NULL,
            hard BLOB NOT NULL,
            easy BLOB NOT NULL,
            logits BLOB NOT NULL,
            recorded_at_ms INTEGER NOT NULL
        ) WITHOUT ROWID;
CREATE TABLE sources (
            camera TEXT PRIMARY KEY,
            settings TEXT NOT NULL
        ) WITHOUT ROWID;
CREATE TABLE fleet_settings (
            camera TEXT NOT NULL,
            setting TEXT NOT NULL,
            counter INTEGER NOT NULL,
            box TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (camera, setting)
        ) WITHOUT ROWID;
CREATE INDEX events_by_time ON events (at_ms);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 1, '[2866142,2910091,3085887,3245984,3307035,3399728,3430625,3455343,3461523]', 1795890980058);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 2, '[5409456,5423487,5479610,5510165,5613898,5641876,5651202,5658663,5660528]', 1795890980058);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 4, '[9766025,9827686,10074330,10171495,10257802,10406660,10456280,10495975,10505899]', 1795890980058);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('bus-stop', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611457104, 1795611457104, '{"slo_ms": 250.0}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('car-park', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611458161, 1795611458161, '{}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('gate', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":2.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795624887175, 1795691009346, '{}');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (1, 1795611457104, 'info', 'bus-stop', 'bus-stop connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (2, 1795611457125, 'info', 'bus-stop', 'bus-stop moved from 288 to 320 px: 320x192 px: the link is not measured yet; 352x224 px must wait for that');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (3, 1795611457143, 'info', 'north-gate', 'north-gate connected from 127.0.0.1');
INSERT INTO history_names (id, camera) VALUES (1, '');
INSERT INTO history_names (id, camera) VALUES (3, 'main-street');
INSERT INTO history_names (id, camera) VALUES (4, 'north-gate');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked, dropped_plan, classes) VALUES (29926857, 1, 18514, 48012, 362, 360, 310, 8, 152, 1, 42, 1, 0, 0, 0, 0, 0, 57120, 2122512, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-320":23,"street-224":85,"street-128":126,"street-256":4,"street-192":24,"street-160":56}', X'2A010301010303010101010301030102010101060103010B010A010901100107010B01100112011501130116011E010F0113010F010D010B010C0107010501020302010102014B06010D010D010A0104010201030102010201030102010401040105010201030109010201060102010201020104010201050102010701040106010601070105010A0103010901040106010C010A0108010A01040109010C010A010C0109010E010B0107010201050101010152080115010D0112010801010104010901150112010701070107010901030106010B0106010D011001060104010A01070104010B010401090108010B0107010201060103010601020105010301010102070135120233017B02081131031403180619880102010201020101010104010101020106010601020103010601050108010D010D010A010C010D010B0109010E010D01130116011001180117011401140109010401030102', '{}', 0, '{}');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked, dropped_plan, classes) VALUES (29926857, 3, 12768, 12004, 92, 92, 80, 3, 55, 0, 9, 0, 0, 0, 0, 0, 0, 14368, 518718, 4149744, 1520847, 57457198, 14, 336803, 777829, 320880000, 9271931, '{"street-224":26,"street-320":4,"street-192":1,"street-128":45,"street-160":5,"street-256":2}', X'2A0103010102030101010101010101010203020501040106010801010101010801030105010601010108010501030102020408014D0101040104010302010101030101010202010103020201020101010104020302010201010301010202020302010104010201020202010201040102010601020105010201030203010153010105010401020201010201010105010801010101020501010103010601010103010401030102010201010101010301010102020301010201010101030202010102010701383202081D198801020102010201020203030103010202010101010401020101010201030101010401010102010301080104010601050106010401040103010201010101', '{}', 0, '{}');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked, dropped_plan, classes) VALUES (29926857, 4, 13004, 12002, 90, 90, 78, 2, 53, 0, 10, 0, 0, 0, 0, 0, 0, 15904, 630886, 5047088, 1862785, 64995095, 14, 277746, 889313, 30421719, 10955742, '{"street-320":5,"street-224":43,"street-128":22,"street-256":2,"street-160":6,"street-192":2}', X'2E010502020101010103010301050104010301030101010601010106010701060105010801020103010103030102010353010103010401020101010101010101010202020102010202010101020202010603010201020102020201030102010201020102010201010102010202020103010101010103010701030101010101010201520101030203010102010102010A0105010201010104010203020102010601050302010401020103010101010102010501030101010201010303413301091614980101010101010201020103020201030201010101020103010301050102010501030105010201020103010A01070104010503010101', '{}', 0, '{}');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked, dropped_plan, classes) VALUES (498780, 1, 18514, 48012, 362, 360, 310, 8, 152, 1, 42, 1, 0, 0, 0, 0, 0, 57120, 2122512, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-320":23,"street-224":85,"street-128":126,"street-256":4,"street-192":24,"street-160":56}', X'2A010301010303010101010301030102010101060103010B010A010901100107010B01100112011501130116011E010F0113010F010D010B010C0107010501020302010102014B06010D010D010A0104010201030102010201030102010401040105010201030109010201060102010201020104010201050102010701040106010601070105010A0103010901040106010C010A0108010A01040109010C010A010C0109010E010B0107010201050101010152080115010D0112010801010104010901150112010701070107010901030106010B0106010D011001060104010A01070104010B010401090108010B0107010201060103010601020105010301010102070135120233017B02081131031403180619880102010201020101010104010101020106010601020103010601050108010D010D010A010C010D010B0109010E010D01130116011001180117011401140109010401030102', '{}', 0, '{}');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked, dropped_plan, classes) VALUES (498780, 3, 12768, 12004, 92, 92, 80, 3, 55, 0, 9, 0, 0, 0, 0, 0, 0, 14368, 518718, 4149744, 1520847, 57457198, 14, 336803, 777829, 320880000, 9271931, '{"street-224":26,"street-320":4,"street-192":1,"street-128":45,"street-160":5,"street-256":2}', X'2A0103010102030101010101010101010203020501040106010801010101010801030105010601010108010501030102020408014D0101040104010302010101030101010202010103020201020101010104020302010201010301010202020302010104010201020202010201040102010601020105010201030203010153010105010401020201010201010105010801010101020501010103010601010103010401030102010201010101010301010102020301010201010101030202010102010701383202081D198801020102010201020203030103010202010101010401020101010201030101010401010102010301080104010601050106010401040103010201010101', '{}', 0, '{}');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked, dropped_plan, classes) VALUES (498780, 4, 13004, 12002, 90, 90, 78, 2, 53, 0, 10, 0, 0, 0, 0, 0, 0, 15904, 630886, 5047088, 1862785, 64995095, 14, 277746, 889313, 30421719, 10955742, '{"street-320":5,"street-224":43,"street-128":22,"street-256":2,"street-160":6,"street-192":2}', X'2E010502020101010103010301050104010301030101010601010106010701060105010801020103010103030102010353010103010401020101010101010101010202020102010202010101020202010603010201020102020201030102010201020102010201010102010202020103010101010103010701030101010101010201520101030203010102010102010A0105010201010104010203020102010601050302010401020103010101010102010501030101010201010303413301091614980101010101010201020103020201030201010101020103010301050102010501030105010201020103010A01070104010503010101', '{}', 0, '{}');
INSERT INTO accuracy_reports (family, variant, content, kind, accuracy, error, source, pictures, measured_at_ms, dominated, details) VALUES ('street', 'street-320', 'c', 'labels', 0.5, 0.01, 'pictures', 10, 1763700000000, '', '{}');
INSERT INTO learned_work (fingerprint, variant, app, work, learned_at_ms) VALUES ('measuring 2 | street 2e0ede4f4ab50e57 858f07a8', 'street-128', 'default', X'93D53A3D4BF0BA3E4BF0BA3E4BF0BA3ECF53E43E45A5ED3E1658F73E99700B3F99700B3F99700B3F99700B3F99700B3F6821113F6821113F6821113FAA0D173FAA0D173FAA0D173FAA0D173FAA0D173FCE371D3FCE371D3FCE371D3FCE371D3FCE371D3FCE371D3FED4F2A3FED4F2A3FED4F2A3F4543313F4543313F4543313F4543313F1105503F1105503F5C58613F5C58613F7E83633F6EAC703F1456753F921D783FB4457A3FAA607D3F72137E3F7916803F53D2803FAD9B813F84BB823FE7FF823FA753843F5C9E893F243C8F3F243C8F3F1F2A9B3F367FA13FA6F5A23FB640C53F864DCD3F528AD13FE366DE3FDA7E024036D20740D4E8084039631F4081B53340060B3B40109F4A40109F4A40BFB9A3403D22C04091F9C7409F500F41', 1795624938574);
INSERT INTO learned_work (fingerprint, variant, app, work, learned_at_ms) VALUES ('measuring 2 | street 2e0ede4f4ab50e57 858f07a8', 'street-160', 'default', X'8B682B3DC8C9B93E17ECE23E17ECE23ED925053F1D401C3F1D401C3F8DA0223F8DA0223F8DA0223F9B43293F9B43293F9B43293F9B43293F012C303F012C303F012C303F012C303F012C303F012C303F012C303F012C303F925C373F40D83E3F40D83E3F1DA2463F58BD4E3F58BD4E3FBA29943FF2DEAD3F225ABC3F225ABC3FF409C43FD936F93FD936F93F3CFC0640523A12401E681E401E681E4095992B40629A3240629A324059E439400C6F4140777A4140777A4140A6506C403CFF7F403CFF7F4076569C403245B0403245B0400A4CD7405E15E0405E15E0407E3AE9407E3AE940717B0341', 1795624927878);
INSERT INTO learned_work (fingerprint, variant, app, work, learned_at_ms) VALUES ('measuring 2 | street 2e0ede4f4ab50e57 858f07a8', 'street-192', 'default', X'3DADD03E4E8ED23E4BB5DC3EC47F0E3F9B7C203F6889313F82844B3FC1ED843F34DF923F2A57D83F365AFD3F62A60F404BFF15405F3E44400B72534030768240CD4C86405768A6407419BD4095CDD540', 1795611470571);
INSERT INTO learned_drift (fingerprint, executor, variant, factor, learned_at_ms) VALUES ('print', 'cpu/0', 'street-320', 1.25, 1763700000000);
INSERT INTO interference (fingerprint, executor, variant, beside, others, neighbours, factor, measured_at_ms) VALUES ('print', 'cpu/0', 'street-320', 'x', 1, 'cpu/1', 1.3, 1763700000000);
INSERT INTO core_factors (fingerprint, executor, variant, batch_size, threads, factor, measured_at_ms) VALUES ('print', 'cpu/0', 'street-320', 1, 2, 0.6, 1763700000000);
INSERT INTO cascade_evidence (camera, decider, hard, easy, logits, recorded_at_ms) VALUES ('bus-stop', 'street-160', X'0000000000000000', X'0000000000000000', X'0000000000000000', 1763700000000);
INSERT INTO sources (camera, settings) VALUES ('yard', '{"url": "rtsp://10.0.0.7/stream"}');
INSERT INTO fleet_settings (camera, setting, counter, box, value) VALUES ('bus-stop', 'rate_hz', 1763700000000, 'attic', '5.0');
