PRAGMA application_id = 1701078885;
PRAGMA user_version = 3;
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
CREATE INDEX events_by_time ON events (at_ms);
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
        latencies BLOB NOT NULL,
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
        latencies BLOB NOT NULL,
        PRIMARY KEY (at, name)
    ) WITHOUT ROWID;
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 1 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2ed61410c7ef6a38 858f07a8', 'cpu/0', 'street-128', 1, '[2539582,2585791,2699279,2767942,2973688,4168998,6813046,8182950,8525426]', 1795610939720);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 1 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2ed61410c7ef6a38 858f07a8', 'cpu/0', 'street-160', 1, '[2778087,2920439,3085815,3183550,3444990,7297097,7342194,9430432,9952491]', 1795610939720);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 1 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2ed61410c7ef6a38 858f07a8', 'cpu/0', 'street-192', 1, '[4229629,4451003,4634198,4864470,8282549,10718646,10764703,13002305,13596778]', 1795610939720);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('bus-stop', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"agent":"edgebox-camera/0.1.0"}', 1795610943753, 1795610943753, '{"slo_ms": 250.0}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('car-park', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"agent":"edgebox-camera/0.1.0"}', 1795610943696, 1795610943696, '{}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('main-street', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"agent":"edgebox-camera/0.1.0"}', 1795610943718, 1795610943718, '{}');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (1, 1795610943696, 'info', 'car-park', 'car-park connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (2, 1795610943697, 'info', 'car-park', 'car-park moved from 288 to 320 px: 320x192 px: the link is not measured yet; 352x224 px must wait for that');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (3, 1795610943718, 'info', 'main-street', 'main-street connected from 127.0.0.1');
INSERT INTO history_names (id, camera) VALUES (1, '');
INSERT INTO history_names (id, camera) VALUES (4, 'north-gate');
INSERT INTO history_names (id, camera) VALUES (5, 'bus-stop');
INSERT INTO history_names (id, camera) VALUES (6, 'main-street');
INSERT INTO history_names (id, camera) VALUES (7, 'car-park');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926848, 1, 282, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{}', X'');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926849, 1, 16896, 45003, 374, 360, 334, 4, 11, 12, 24, 0, 0, 0, 0, 0, 0, 71360, 2560340, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-320":56,"street-256":69,"street-224":21,"street-192":19,"street-416":6,"street-384":3,"street-160":59,"street-288":3,"street-128":101,"street-544":1}', X'28010101020101020201010201040104010101070109010401060109010D010E011901160113010D01110110010C0113010D0111010E010901050107010A0106010A010B01050102010101020101010103024401010301050113012A0124011601090106010201040103010401020107010501090103010401020104010401050102010401040103010601040108010401060103010201030104010701050102010401040104010301060104010301080104010401030102010501030103010101050102010251020109012C0114011D0108010401070106010E0202012301090106010E010A0106010901030108010F010A01060104010701060106010601050104010601010105010201010102010201010201010204013752010D064C0753021B010F061A0C1088010301010101050105010301040104010901120112010A010E011001080117010F0111010D0109010C0109010A010C0111010A010F011001090105010401070107010601030102');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926849, 4, 12894, 12021, 92, 89, 80, 2, 3, 3, 7, 0, 0, 0, 0, 0, 0, 18880, 737249, 5897992, 572359, 119249504, 12, 1500999, 1782676, 326943174, 18614844, '{"street-256":24,"street-416":6,"street-384":3,"street-320":8,"street-128":21,"street-160":17,"street-288":2,"street-544":1}', X'2801010103010301010201010101010401040101010301030103010401060109010801020105010801020106010101020301020102014F02010101060107010601060101010202030101020201040101020201010202020102010102020201010101020303010101010201030301010201010102020101020101010204020201010102015101010201080103010B010104010308010201030104020101030203010501010102010201040104010201020101010101010201010102010101040104013752AE0102020101010301020103010101030109010401040104010401040103010301020102010101030104010301030101010101030101010101010101010202010101');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 1, 17178, 45003, 374, 360, 334, 4, 11, 12, 24, 0, 0, 0, 0, 0, 0, 71360, 2560340, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-320":56,"street-256":69,"street-224":21,"street-192":19,"street-416":6,"street-384":3,"street-160":59,"street-288":3,"street-128":101,"street-544":1}', X'28010101020101020201010201040104010101070109010401060109010D010E011901160113010D01110110010C0113010D0111010E010901050107010A0106010A010B01050102010101020101010103024401010301050113012A0124011601090106010201040103010401020107010501090103010401020104010401050102010401040103010601040108010401060103010201030104010701050102010401040104010301060104010301080104010401030102010501030103010101050102010251020109012C0114011D0108010401070106010E0202012301090106010E010A0106010901030108010F010A01060104010701060106010601050104010601010105010201010102010201010201010204013752010D064C0753021B010F061A0C1088010301010101050105010301040104010901120112010A010E011001080117010F0111010D0109010C0109010A010C0111010A010F011001090105010401070107010601030102');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 4, 12894, 12021, 92, 89, 80, 2, 3, 3, 7, 0, 0, 0, 0, 0, 0, 18880, 737249, 5897992, 572359, 119249504, 12, 1500999, 1782676, 326943174, 18614844, '{"street-256":24,"street-416":6,"street-384":3,"street-320":8,"street-128":21,"street-160":17,"street-288":2,"street-544":1}', X'2801010103010301010201010101010401040101010301030103010401060109010801020105010801020106010101020301020102014F02010101060107010601060101010202030101020201040101020201010202020102010102020201010101020303010101010201030301010201010102020101020101010204020201010102015101010201080103010B010104010308010201030104020101030203010501010102010201040104010201020101010101010201010102010101040104013752AE0102020101010301020103010101030109010401040104010401040103010301020102010101030104010301030101010101030101010101010101010202010101');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 5, 12021, 10994, 95, 92, 82, 1, 0, 3, 9, 0, 0, 0, 0, 0, 0, 18304, 720038, 5760304, 2126053, 29852033, 11, 533906, 1140424, 48775276, 5593530, '{"street-320":22,"street-256":21,"street-288":1,"street-160":19,"street-128":20}', X'38040104010901040104010701080106010901060104010201040102010201030103010102014D0102020102010B0108010501050101010103010201020401010101020101010103010202010203010101030102040201010102030101010101020201020101010301020201010101010401540101090107010801030102050101080105010201050103010201040101010101030103020203010202010101030101010101010201010104014953A702010701030102010601060104010B010301050102010101030101010301040103010201040104010201010101010101010301');
