PRAGMA application_id = 1701078885;
PRAGMA user_version = 4;
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
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 1 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 1, '[3373033,3573272,4374229,4806187,4907573,4913261,4915157,4916674,4917053]', 1795610981905);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 1 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 2, '[9396954,9797675,11400558,12461077,17900327,18728462,19004507,19225343,19280552]', 1795610981905);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 1 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 4, '[10523251,17518338,45498686,49198094,78825290,95044971,100451531,104776779,105858091]', 1795610981905);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('bus-stop', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"agent":"edgebox-camera/0.1.0"}', 1795610987189, 1795610987189, '{"slo_ms": 250.0}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('car-park', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"agent":"edgebox-camera/0.1.0"}', 1795610987493, 1795610987493, '{}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('main-street', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"agent":"edgebox-camera/0.1.0"}', 1795610987225, 1795610987225, '{}');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (1, 1795610987189, 'info', 'bus-stop', 'bus-stop connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (2, 1795610987225, 'info', 'main-street', 'main-street connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (3, 1795610987250, 'info', 'bus-stop', 'bus-stop moved from 288 to 256 px: 256x160 px: 288x192 px would wait 9 ms too long behind other cameras'' frames');
INSERT INTO history_names (id, camera) VALUES (1, '');
INSERT INTO history_names (id, camera) VALUES (3, 'bus-stop');
INSERT INTO history_names (id, camera) VALUES (4, 'main-street');
INSERT INTO history_names (id, camera) VALUES (5, 'car-park');
INSERT INTO history_names (id, camera) VALUES (6, 'north-gate');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926849, 1, 18093, 46927, 371, 363, 223, 45, 6, 7, 95, 1, 0, 0, 0, 0, 0, 34464, 1112388, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-128":264,"street-192":1,"street-160":3}', X'2102020103020301010105020103010301010104010401050107010601060107010C010C010B010C0106010D0111010E010901160111010A010F010A0109010B010301040102010202010201470101030102010801070102010209020101010301010101030101010101020101010202010201010403010201030201020201030104010401080106010C0107010B0110010E0112012001190111010E010E0107010101015001010901160102010301010102010B0204010301040102010301030202020103020105010602060112010901130107010C010D010F0114010A010C010F0107010501080102010208023523020205220119051F0536032E0621020889030202030102010102010101030101010101030102010101020204010201040102010201020101010101060103010201060107010C010B0119011F011B0129012001100105010101010101');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926849, 3, 12988, 11991, 94, 92, 54, 10, 0, 1, 28, 1, 0, 0, 0, 0, 0, 8256, 299882, 2399056, 2816895, 11356045, 14, 220527, 309920, 130769867, 1170617, '{"street-192":1,"street-128":63}', X'3801010401060103010401010103010A010901060102010601010202010101020101010103014C01030201020A0101010102090101010301070102010301030202020102010301030104010701090106010301030105540101050202010102020202020103020201050101010101020101050104010401010102010301030102010201020107020301040A01421F0E21980301010202020202010301030202010101010401010102010501080107010B0105010401020301');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926849, 4, 12988, 11991, 94, 89, 56, 13, 0, 5, 20, 0, 0, 0, 0, 0, 0, 8832, 265858, 2126864, 1978248, 19277977, 14, 189675, 219373, 31913246, 2965635, '{"street-128":69}', X'2602040106020101010101010102010301040102010401010105010601030106010201010103010301020105010202030102020104014C020101010303010B01020105010B0108010101010101010101020301030104010401070109010901030107010453020106010103020102050101010101070101010102020101040102010501030104010401070106010301030101010201010101010101013D2307229F0102010301020101010101010101010401050106010102020202060102010401070106010C010D010201010101');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 1, 18312, 46927, 371, 363, 223, 45, 6, 7, 95, 1, 0, 0, 0, 0, 0, 34464, 1112388, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-128":264,"street-192":1,"street-160":3}', X'2102020103020301010105020103010301010104010401050107010601060107010C010C010B010C0106010D0111010E010901160111010A010F010A0109010B010301040102010202010201470101030102010801070102010209020101010301010101030101010101020101010202010201010403010201030201020201030104010401080106010C0107010B0110010E0112012001190111010E010E0107010101015001010901160102010301010102010B0204010301040102010301030202020103020105010602060112010901130107010C010D010F0114010A010C010F0107010501080102010208023523020205220119051F0536032E0621020889030202030102010102010101030101010101030102010101020204010201040102010201020101010101060103010201060107010C010B0119011F011B0129012001100105010101010101');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 3, 12988, 11991, 94, 92, 54, 10, 0, 1, 28, 1, 0, 0, 0, 0, 0, 8256, 299882, 2399056, 2816895, 11356045, 14, 220527, 309920, 130769867, 1170617, '{"street-192":1,"street-128":63}', X'3801010401060103010401010103010A010901060102010601010202010101020101010103014C01030201020A0101010102090101010301070102010301030202020102010301030104010701090106010301030105540101050202010102020202020103020201050101010101020101050104010401010102010301030102010201020107020301040A01421F0E21980301010202020202010301030202010101010401010102010501080107010B0105010401020301');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 4, 12988, 11991, 94, 89, 56, 13, 0, 5, 20, 0, 0, 0, 0, 0, 0, 8832, 265858, 2126864, 1978248, 19277977, 14, 189675, 219373, 31913246, 2965635, '{"street-128":69}', X'2602040106020101010101010102010301040102010401010105010601030106010201010103010301020105010202030102020104014C020101010303010B01020105010B0108010101010101010101020301030104010401070109010901030107010453020106010103020102050101010101070101010102020101040102010501030104010401070106010301030101010201010101010101013D2307229F0102010301020101010101010101010401050106010102020202060102010401070106010C010D010201010101');
INSERT INTO judgements (family, variant, content, kind, accuracy, error, source, pictures, measured_at_ms, set_aside, details) VALUES ('street', 'street-320', 'c', 'labels', 0.5, 0.01, 'pictures', 10, 1763700000000, '', '{}');
