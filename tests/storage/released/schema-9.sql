PRAGMA application_id = 1701078885;
PRAGMA user_version = 9;
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
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 1, '[7673387,8639259,12502749,20534349,33026152,40869927,43484518,45576192,46099110]', 1795611212581);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-160', 1, '[11587927,11621132,12502749,20534349,33026152,40869927,43484518,45576192,46099110]', 1795611212581);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-192', 1, '[11587927,11621132,22368451,26208169,41590144,58047506,63533294,67921924,69019081]', 1795611212581);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('bus-stop', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611217766, 1795611217766, '{"slo_ms": 250.0}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('car-park', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611217945, 1795611217945, '{}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('main-street', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611217673, 1795611217673, '{}');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (1, 1795611217673, 'info', 'main-street', 'main-street connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (2, 1795611217766, 'info', 'bus-stop', 'bus-stop connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (3, 1795611217806, 'info', 'north-gate', 'north-gate connected from 127.0.0.1');
INSERT INTO history_names (id, camera) VALUES (1, '');
INSERT INTO history_names (id, camera) VALUES (3, 'north-gate');
INSERT INTO history_names (id, camera) VALUES (4, 'car-park');
INSERT INTO history_names (id, camera) VALUES (5, 'bus-stop');
INSERT INTO history_names (id, camera) VALUES (6, 'main-street');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926853, 1, 18612, 45652, 378, 323, 174, 14, 7, 48, 135, 7, 0, 0, 0, 0, 0, 24224, 1004218, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-128":183,"street-160":5}', X'2E0105010101010301030102010701090106010C01090109010701040108010B0109010D0106010C010B010B010A01080105010201010105010103015D0202010301010101030101020101020201020201010105010201040104010601080109010B010F010B0109010D0113010D010A010C0109010301040103030103014C020105012201040102010401020102010302020106010401010104010301040104010601050109010501050103010201070104010501060105010501030105010A0102010501040101010301024918063201190733030E071403049502010301020101010101010102010501080114011201170116011901100106011301050106020104010101');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926853, 3, 12352, 11100, 94, 84, 48, 3, 7, 9, 33, 1, 0, 0, 0, 0, 0, 6688, 268060, 2144480, 2755165, 10693130, 11, 79745, 80547, 28262127, 2236408, '{"street-160":5,"street-128":46}', X'3502010202010104010201080103010301040101010201030103020301030101010202010101020101016801040104010201010101020301010101010103010401020107010901030103010701010101010153010101010A010201010201010201010301010201010101010101010101010301020102010102020101020203020201010101030202010103015733A202010203010201010101020103010501050108010A01020103010301020101');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926853, 4, 12996, 12352, 94, 82, 36, 2, 0, 8, 44, 4, 0, 0, 0, 0, 0, 4864, 252658, 2021264, 6464350, 3404571, 12, 54494, 54877, 34530019, 382831, '{"street-128":38}', X'430501010104010401060107010501010101020304015D02050101010101060104020101010101030101010601020103010401020102020101020301030153010109010101010101050101020101020101010101010101020101020102010101010201010102010102010302020103015B0E071403049801030102010104010501060106010401020102010402010601');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 1, 18612, 45652, 378, 323, 174, 14, 7, 48, 135, 7, 0, 0, 0, 0, 0, 24224, 1004218, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-128":183,"street-160":5}', X'2E0105010101010301030102010701090106010C01090109010701040108010B0109010D0106010C010B010B010A01080105010201010105010103015D0202010301010101030101020101020201020201010105010201040104010601080109010B010F010B0109010D0113010D010A010C0109010301040103030103014C020105012201040102010401020102010302020106010401010104010301040104010601050109010501050103010201070104010501060105010501030105010A0102010501040101010301024918063201190733030E071403049502010301020101010101010102010501080114011201170116011901100106011301050106020104010101');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 3, 12352, 11100, 94, 84, 48, 3, 7, 9, 33, 1, 0, 0, 0, 0, 0, 6688, 268060, 2144480, 2755165, 10693130, 11, 79745, 80547, 28262127, 2236408, '{"street-160":5,"street-128":46}', X'3502010202010104010201080103010301040101010201030103020301030101010202010101020101016801040104010201010101020301010101010103010401020107010901030103010701010101010153010101010A010201010201010201010301010201010101010101010101010301020102010102020101020203020201010101030202010103015733A202010203010201010101020103010501050108010A01020103010301020101');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 4, 12996, 12352, 94, 82, 36, 2, 0, 8, 44, 4, 0, 0, 0, 0, 0, 4864, 252658, 2021264, 6464350, 3404571, 12, 54494, 54877, 34530019, 382831, '{"street-128":38}', X'430501010104010401060107010501010101020304015D02050101010101060104020101010101030101010601020103010401020102020101020301030153010109010101010101050101020101020101010101010101020101020102010101010201010102010102010302020103015B0E071403049801030102010104010501060106010401020102010402010601');
INSERT INTO accuracy_reports (family, variant, content, kind, accuracy, error, source, pictures, measured_at_ms, dominated, details) VALUES ('street', 'street-320', 'c', 'labels', 0.5, 0.01, 'pictures', 10, 1763700000000, '', '{}');
INSERT INTO learned_work (fingerprint, variant, app, work, learned_at_ms) VALUES ('measuring 2 | street 2e0ede4f4ab50e57 858f07a8', 'street-128', 'default', X'FBD2183E87051E3E0931203EC51C253E4499263E826E273EC6E4273E3B5E283E8DD3293E649B2A3E006A2B3E17CD2B3ECBFD2B3EED952C3E2DAC2C3EF6AE2D3E33C52D3E7FEE2D3E30672E3E5C2F303EC44A323E7052323E4E4A343E3343583E0495583E1C80603E3F82673E85566A3EB5836F3E8605723E193A7E3E4CA8C03E0F87C33E6F8BCA3EF7AECF3EBA53D43ED6B3D53E51BED53E79DCE23E6455E53E2ACAEF3E39DB033F4972073F9B54093F36EC133FD3EA1B3FC9AF263FCBD12A3FA5C73D3FCEEC423FF8BB4C3FB9065C3F81955F3FBA9C5F3F98CB6C3F6D57713FD814753FBE26753FBD2D803F6764883FDF7A883F35AB893F9B948D3F5605903FA0B7953FA36FAD3FCC52BA3F7F65BA3F03BBBC3F2F13C93F1088D13F26ADDE3F6852E73F4CD1E73F32FEF63FC3FCF93F85330540D5F30B404B840E40BEAE1740BDE12440DBDB3440F3143B404EFA3E40A5D94840E8675340F995534073C75440AF4E56401AC06140DE5E7240E2D8734053B678408986824062B386408C138C405BB99F40DD6FA340BD76AB409944AF40', 1795611230336);
INSERT INTO learned_drift (fingerprint, executor, variant, factor, learned_at_ms) VALUES ('print', 'cpu/0', 'street-320', 1.25, 1763700000000);
INSERT INTO interference (fingerprint, executor, variant, beside, others, neighbours, factor, measured_at_ms) VALUES ('print', 'cpu/0', 'street-320', 'x', 1, 'cpu/1', 1.3, 1763700000000);
INSERT INTO core_factors (fingerprint, executor, variant, batch_size, threads, factor, measured_at_ms) VALUES ('print', 'cpu/0', 'street-320', 1, 2, 0.6, 1763700000000);
