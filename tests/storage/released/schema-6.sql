PRAGMA application_id = 1701078885;
PRAGMA user_version = 6;
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
CREATE TABLE judgements (
            family TEXT NOT NULL,
            variant TEXT NOT NULL,
            content TEXT NOT NULL,
            kind TEXT NOT NULL,
            accuracy REAL NOT NULL,
            error REAL NOT NULL,
            source TEXT NOT NULL,
            pictures INTEGER NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            set_aside TEXT NOT NULL,
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
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 1, '[3264101,3285915,3373173,3547513,3592640,7403461,8673735,9689954,9944009]', 1795611023766);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-160', 1, '[3958145,3971467,4024754,4151127,5936458,8962548,9971244,10778202,10979941]', 1795611023766);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-192', 1, '[5668261,6045717,7555541,18058813,18820758,39744943,46719672,52299454,53694400]', 1795611023766);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('bus-stop', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"agent":"edgebox-camera/0.1.0"}', 1795611029264, 1795611029264, '{"slo_ms": 250.0}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('car-park', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"agent":"edgebox-camera/0.1.0"}', 1795611030357, 1795611030357, '{}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('main-street', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"agent":"edgebox-camera/0.1.0"}', 1795611029562, 1795611029562, '{}');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (1, 1795611029264, 'info', 'bus-stop', 'bus-stop connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (2, 1795611029562, 'info', 'main-street', 'main-street connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (3, 1795611029562, 'info', 'north-gate', 'north-gate connected from 127.0.0.1');
INSERT INTO history_names (id, camera) VALUES (1, '');
INSERT INTO history_names (id, camera) VALUES (3, 'north-gate');
INSERT INTO history_names (id, camera) VALUES (4, 'car-park');
INSERT INTO history_names (id, camera) VALUES (5, 'bus-stop');
INSERT INTO history_names (id, camera) VALUES (6, 'main-street');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926850, 1, 19468, 45717, 364, 84, 56, 5, 4, 274, 23, 6, 0, 0, 0, 0, 0, 7872, 318058, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-128":59,"street-160":2}', X'26010201020106010301010101010102010101040103010401020102010401020103010401050102010501010102010101040201050101014E01010501030101030103010101020101010101010102020101020201010204010101050202010101040102020205030103010102030101010202010301040102015315010301010101020101020103020302010101010102020101020102010101020302010101010201010101010102010201010102010401010102013501031801030102010405020B0102010405010203060402080206020204760104010401010102010103010101010102010101050104010601010102010301010104010502020101010301030401010101010101010202010301');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926850, 3, 11759, 10759, 88, 13, 8, 3, 1, 73, 2, 2, 0, 0, 0, 0, 0, 1408, 48014, 384112, 986954, 77155022, 14, 108269, 109963, 20591952, 16087960, '{"street-128":11}', X'28011101010201010501010302010601550101010F0107010301020101010801070103010601530206010E010303020101010B010401380106021201050103068A010E0106010101030201020C0101010201');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926850, 4, 11965, 10966, 87, 19, 17, 0, 0, 66, 2, 2, 0, 0, 0, 0, 0, 2208, 63743, 509944, 1414661, 6332158, 14, 82392, 200021, 108286087, 565421, '{"street-160":1,"street-128":16}', X'4002010101020104020101010104070101014F02010204010301010104010401050102020501020106010101020160050101010103010101010202010201010103010C0108014103020206020B0107010F020602020487010101010503020101010103020301040101010101');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 1, 19468, 45717, 364, 84, 56, 5, 4, 274, 23, 6, 0, 0, 0, 0, 0, 7872, 318058, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-128":59,"street-160":2}', X'26010201020106010301010101010102010101040103010401020102010401020103010401050102010501010102010101040201050101014E01010501030101030103010101020101010101010102020101020201010204010101050202010101040102020205030103010102030101010202010301040102015315010301010101020101020103020302010101010102020101020102010101020302010101010201010101010102010201010102010401010102013501031801030102010405020B0102010405010203060402080206020204760104010401010102010103010101010102010101050104010601010102010301010104010502020101010301030401010101010101010202010301');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 3, 11759, 10759, 88, 13, 8, 3, 1, 73, 2, 2, 0, 0, 0, 0, 0, 1408, 48014, 384112, 986954, 77155022, 14, 108269, 109963, 20591952, 16087960, '{"street-128":11}', X'28011101010201010501010302010601550101010F0107010301020101010801070103010601530206010E010303020101010B010401380106021201050103068A010E0106010101030201020C0101010201');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 4, 11965, 10966, 87, 19, 17, 0, 0, 66, 2, 2, 0, 0, 0, 0, 0, 2208, 63743, 509944, 1414661, 6332158, 14, 82392, 200021, 108286087, 565421, '{"street-160":1,"street-128":16}', X'4002010101020104020101010104070101014F02010204010301010104010401050102020501020106010101020160050101010103010101010202010201010103010C0108014103020206020B0107010F020602020487010101010503020101010103020301040101010101');
INSERT INTO judgements (family, variant, content, kind, accuracy, error, source, pictures, measured_at_ms, set_aside, details) VALUES ('street', 'street-320', 'c', 'labels', 0.5, 0.01, 'pictures', 10, 1763700000000, '', '{}');
INSERT INTO learned_work (fingerprint, variant, app, work, learned_at_ms) VALUES ('measuring 2 | street 2e0ede4f4ab50e57 858f07a8', 'street-128', 'default', X'8C136F3F5A17713F99E3713F457F733FFE4C743F166C743F65F7743F0501753F0C93763F006D773F527A773FE590773F4491773F63ED7A3F8C067B3FBA647B3F04C77C3F2B7A7E3F6A8D7E3FF56D813F451E823FA2B6823FDC92843F9A20873F77679A3FE3B1A93FB023C23FB09FDC3F885AE03FF65AF73F8D51F93F344FFA3F963B0C40BFC00C40D32E1440E3022B408511434033AE5B4024198440BA2F854097E689401BD3A840BC57DA40E643E340889B0B413E6E0E41905A11416B2E26411A5C4041CE725041F2F35C419B587D41CEAD85418A46A5417951E04195C30842F0EF42429AEF5042E2268442', 1795611042676);
INSERT INTO learned_drift (fingerprint, executor, variant, factor, learned_at_ms) VALUES ('print', 'cpu/0', 'street-320', 1.25, 1763700000000);
INSERT INTO interference (fingerprint, executor, variant, neighbours, interference, measured_at_ms) VALUES ('print', 'cpu/0', 'street-320', 'cpu/1', 1.3, 1763700000000);
