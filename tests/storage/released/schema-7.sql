PRAGMA application_id = 1701078885;
PRAGMA user_version = 7;
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
            neighbours TEXT NOT NULL,
            interference REAL NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, executor, variant)
        ) WITHOUT ROWID;
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 1, '[3354365,3358337,3374225,4382546,5832215,6638556,6907336,7122360,7176116]', 1795611063837);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-160', 1, '[4081878,4648922,6917100,7955557,9282383,11103972,11711168,12196925,12318364]', 1795611063837);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-192', 1, '[5740609,5751030,6917100,7955557,9282383,11103972,11711168,12196925,12318364]', 1795611063837);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('bus-stop', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611068879, 1795611068879, '{"slo_ms": 250.0}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('car-park', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611070493, 1795611070493, '{}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('main-street', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611069061, 1795611069061, '{}');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (1, 1795611068879, 'info', 'bus-stop', 'bus-stop connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (2, 1795611068884, 'info', 'bus-stop', 'bus-stop moved from 288 to 320 px: 320x192 px: the link is not measured yet; 352x224 px must wait for that');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (3, 1795611068901, 'info', 'north-gate', 'north-gate connected from 127.0.0.1');
INSERT INTO history_names (id, camera) VALUES (1, '');
INSERT INTO history_names (id, camera) VALUES (3, 'north-gate');
INSERT INTO history_names (id, camera) VALUES (4, 'bus-stop');
INSERT INTO history_names (id, camera) VALUES (5, 'car-park');
INSERT INTO history_names (id, camera) VALUES (6, 'main-street');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926851, 1, 19351, 46974, 370, 266, 122, 26, 26, 100, 118, 4, 0, 0, 0, 0, 0, 20256, 977645, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-320":4,"street-256":1,"street-160":2,"street-128":139,"street-384":1,"street-224":1}', X'26010602030203010101010201050101010201030106010301060109010501080108010501070108010E0108010401040109010701060102010302010103010102014C030104010301010102030104020201010105010202010201010201020301030101010101020104010201020104010201050103010801040106010C010601070105010B01040107010201060103010702035203012001050103010301010101020101040202020301010104010101030201010401040103010101010102010501060108010301050102010901020105010201030104010201010103010404013C0E040E061D050502050127021A0604070B0201830102020302010104020101010201020101010502030103010201010103010501060105010A010B0109010D0109010801070105010B010A0103010201020501');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926851, 3, 12995, 11981, 90, 72, 31, 8, 7, 18, 33, 0, 0, 0, 0, 0, 0, 5440, 307711, 2461688, 2783408, 11750319, 12, 113333, 140034, 129006570, 3419224, '{"street-320":1,"street-384":1,"street-128":37}', X'2C02030103010101010101020101010101020101010101040102010201020101010201010202010101010201010101010101040201014E0102010901020108010701010104010203010101010101010101020203020102060101010401010102020302015201010801010201010101010901010101010301010305010104010302010202010102010201020101010103522796020302080105010101030101020101010201010103010101060102010101030103010301020201');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926851, 4, 12995, 11981, 94, 66, 33, 12, 13, 26, 21, 2, 0, 0, 0, 0, 0, 6368, 244956, 1959648, 3166966, 6977867, 12, 77519, 82937, 89986773, 1652009, '{"street-320":3,"street-160":1,"street-128":41}', X'34010101040401020101010401010104010301030103010401020103020101010101010301010101020150010102020104010F010502010103020601020402020106020301020103010101030202010301020202530A0102010101010701020202010601010104020101010201030102010101050203010101010101010207013C0E0F05051A9801040101010101010102020301030201010102020401030101010501020101010201010105010502020601');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 1, 19351, 46974, 370, 266, 122, 26, 26, 100, 118, 4, 0, 0, 0, 0, 0, 20256, 977645, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-320":4,"street-256":1,"street-160":2,"street-128":139,"street-384":1,"street-224":1}', X'26010602030203010101010201050101010201030106010301060109010501080108010501070108010E0108010401040109010701060102010302010103010102014C030104010301010102030104020201010105010202010201010201020301030101010101020104010201020104010201050103010801040106010C010601070105010B01040107010201060103010702035203012001050103010301010101020101040202020301010104010101030201010401040103010101010102010501060108010301050102010901020105010201030104010201010103010404013C0E040E061D050502050127021A0604070B0201830102020302010104020101010201020101010502030103010201010103010501060105010A010B0109010D0109010801070105010B010A0103010201020501');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 3, 12995, 11981, 90, 72, 31, 8, 7, 18, 33, 0, 0, 0, 0, 0, 0, 5440, 307711, 2461688, 2783408, 11750319, 12, 113333, 140034, 129006570, 3419224, '{"street-320":1,"street-384":1,"street-128":37}', X'2C02030103010101010101020101010101020101010101040102010201020101010201010202010101010201010101010101040201014E0102010901020108010701010104010203010101010101010101020203020102060101010401010102020302015201010801010201010101010901010101010301010305010104010302010202010102010201020101010103522796020302080105010101030101020101010201010103010101060102010101030103010301020201');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 4, 12995, 11981, 94, 66, 33, 12, 13, 26, 21, 2, 0, 0, 0, 0, 0, 6368, 244956, 1959648, 3166966, 6977867, 12, 77519, 82937, 89986773, 1652009, '{"street-320":3,"street-160":1,"street-128":41}', X'34010101040401020101010401010104010301030103010401020103020101010101010301010101020150010102020104010F010502010103020601020402020106020301020103010101030202010301020202530A0102010101010701020202010601010104020101010201030102010101050203010101010101010207013C0E0F05051A9801040101010101010102020301030201010102020401030101010501020101010201010105010502020601');
INSERT INTO accuracy_reports (family, variant, content, kind, accuracy, error, source, pictures, measured_at_ms, dominated, details) VALUES ('street', 'street-320', 'c', 'labels', 0.5, 0.01, 'pictures', 10, 1763700000000, '', '{}');
INSERT INTO learned_work (fingerprint, variant, app, work, learned_at_ms) VALUES ('measuring 2 | street 2e0ede4f4ab50e57 858f07a8', 'street-128', 'default', X'28EB463FB2A8483FF307493FBB50493FB18A493F0BDD4C3F3ED38D3FD636CE3F1E7FDC3F94A4BC40F773CB407F4DF940AC540A411C5F1041E66C1141F0D6114188351B41670E1F418EE12041F0D02241028C2B416EF62D4198C440418F04434141444C4149985F41F15C7041B7927841E0D27C41E42B8841D92989412A918B41BC648E414F6892417095A7410453AF4149A0BC4194B4BD41E28FEE4128490142D6030342AFC9084291010B4298785242', 1795611082686);
INSERT INTO learned_drift (fingerprint, executor, variant, factor, learned_at_ms) VALUES ('print', 'cpu/0', 'street-320', 1.25, 1763700000000);
INSERT INTO interference (fingerprint, executor, variant, neighbours, interference, measured_at_ms) VALUES ('print', 'cpu/0', 'street-320', 'cpu/1', 1.3, 1763700000000);
