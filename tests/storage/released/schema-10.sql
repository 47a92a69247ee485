PRAGMA application_id = 1701078885;
PRAGMA user_version = 10;
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
        latencies BLOB NOT NULL, tracked TEXT NOT NULL DEFAULT '{}',
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
        latencies BLOB NOT NULL, tracked TEXT NOT NULL DEFAULT '{}',
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
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 1, '[3392072,3417223,3517828,13768534,19764553,21891792,22600872,23168136,23309952]', 1795611265210);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 2, '[6500140,8090869,14453784,16231031,30551476,33135979,33997480,34686681,34858981]', 1795611265210);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 4, '[22999140,26295613,39481504,39629816,64842211,75145983,78580573,81328246,82015164]', 1795611265210);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('bus-stop', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611269907, 1795611269907, '{"slo_ms": 250.0}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('car-park', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611270033, 1795611270033, '{}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('main-street', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611269861, 1795611269861, '{}');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (1, 1795611269781, 'info', 'north-gate', 'north-gate connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (2, 1795611269861, 'info', 'main-street', 'main-street connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (3, 1795611269886, 'info', 'main-street', 'main-street moved from 288 to 256 px: 256x160 px: two cameras share cpu/0; 288x192 px would need 4 % more of its time');
INSERT INTO history_names (id, camera) VALUES (1, '');
INSERT INTO history_names (id, camera) VALUES (3, 'main-street');
INSERT INTO history_names (id, camera) VALUES (4, 'north-gate');
INSERT INTO history_names (id, camera) VALUES (5, 'bus-stop');
INSERT INTO history_names (id, camera) VALUES (6, 'car-park');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked) VALUES (29926854, 1, 17706, 46082, 372, 306, 242, 16, 136, 62, 48, 4, 0, 0, 0, 0, 0, 39200, 1340670, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-192":44,"street-160":70,"street-128":135,"street-224":1,"street-256":8}', X'2B0101010201030101020102010301040104010701070105010501050113010B01120107010E010F0109010A010A0111010A0110010C010F0107010501060105010302014C0201010104010C0108010B01070103010401040104010101010102010201030101010101010102010101050105010401030103010501050104010701030104010401030107010601050109010401040108010901090103010A01090106010801090106010501060103020102015101010F010F01120105010401070108010F01060102010C010501050106020A01070106010401090106010501020109010A01070105010501040108010301050105010301020102010301060104020203023D34013C0A27031C05460409910101010101020101030105010301040102010501050102010B01060108010F010A010B010A01070108010B01130110010F0112011301090109010701070102010101030103', '{}');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked) VALUES (29926854, 3, 12005, 11036, 96, 80, 65, 5, 44, 15, 10, 1, 0, 0, 0, 0, 0, 10720, 354931, 2839448, 2319835, 23229586, 11, 55388, 55788, 616326679, 12945101, '{"street-192":20,"street-160":15,"street-128":35}', X'2B01010102010401010101020102010301040101010301010102010501040104010301060105010102030104020502030101020101024F0101010101010201030105030101010101040102010401010103020101020201020101010101020101010101020103010102010101010201010104010101020102020401030102010401020102550101010101010402020103010201060101020201030102010302030102010201010103010101030101010401050102010101010101010101010101020102010202010102015346950102010201010101020302010101020204010201030103010101040104010101010102010301050104010501040103010401010102010102010101', '{}');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked) VALUES (29926854, 4, 12925, 12005, 87, 74, 58, 2, 37, 12, 14, 1, 0, 0, 0, 0, 0, 9568, 355950, 2847600, 1987766, 19564128, 12, 115048, 270659, 64794330, 6058981, '{"street-224":1,"street-160":4,"street-256":7,"street-192":12,"street-128":36}', X'31010101010101010102020301040101010201010109010201050102010301040104010201030102010101010203050102014F060102010201030102020101010201020105010301010201010201010101010101050101010102010201010101010101030302010501030102010301020202050152050103010101010202010301020101010101070101010101020202010101010302010102030101010401010101020202020101010101010101010201010102433CA8010401010101030102020201010101010201020103010301010103020101030101010501020104010301040104010101040102', '{}');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked) VALUES (498780, 1, 17706, 46082, 372, 306, 242, 16, 136, 62, 48, 4, 0, 0, 0, 0, 0, 39200, 1340670, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-192":44,"street-160":70,"street-128":135,"street-224":1,"street-256":8}', X'2B0101010201030101020102010301040104010701070105010501050113010B01120107010E010F0109010A010A0111010A0110010C010F0107010501060105010302014C0201010104010C0108010B01070103010401040104010101010102010201030101010101010102010101050105010401030103010501050104010701030104010401030107010601050109010401040108010901090103010A01090106010801090106010501060103020102015101010F010F01120105010401070108010F01060102010C010501050106020A01070106010401090106010501020109010A01070105010501040108010301050105010301020102010301060104020203023D34013C0A27031C05460409910101010101020101030105010301040102010501050102010B01060108010F010A010B010A01070108010B01130110010F0112011301090109010701070102010101030103', '{}');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked) VALUES (498780, 3, 12005, 11036, 96, 80, 65, 5, 44, 15, 10, 1, 0, 0, 0, 0, 0, 10720, 354931, 2839448, 2319835, 23229586, 11, 55388, 55788, 616326679, 12945101, '{"street-192":20,"street-160":15,"street-128":35}', X'2B01010102010401010101020102010301040101010301010102010501040104010301060105010102030104020502030101020101024F0101010101010201030105030101010101040102010401010103020101020201020101010101020101010101020103010102010101010201010104010101020102020401030102010401020102550101010101010402020103010201060101020201030102010302030102010201010103010101030101010401050102010101010101010101010101020102010202010102015346950102010201010101020302010101020204010201030103010101040104010101010102010301050104010501040103010401010102010102010101', '{}');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked) VALUES (498780, 4, 12925, 12005, 87, 74, 58, 2, 37, 12, 14, 1, 0, 0, 0, 0, 0, 9568, 355950, 2847600, 1987766, 19564128, 12, 115048, 270659, 64794330, 6058981, '{"street-224":1,"street-160":4,"street-256":7,"street-192":12,"street-128":36}', X'31010101010101010102020301040101010201010109010201050102010301040104010201030102010101010203050102014F060102010201030102020101010201020105010301010201010201010101010101050101010102010201010101010101030302010501030102010301020202050152050103010101010202010301020101010101070101010101020202010101010302010102030101010401010101020202020101010101010101010201010102433CA8010401010101030102020201010101010201020103010301010103020101030101010501020104010301040104010101040102', '{}');
INSERT INTO accuracy_reports (family, variant, content, kind, accuracy, error, source, pictures, measured_at_ms, dominated, details) VALUES ('street', 'street-320', 'c', 'labels', 0.5, 0.01, 'pictures', 10, 1763700000000, '', '{}');
INSERT INTO learned_work (fingerprint, variant, app, work, learned_at_ms) VALUES ('measuring 2 | street 2e0ede4f4ab50e57 858f07a8', 'street-128', 'default', X'41497E3E41497E3E41497E3E41497E3EF654843EF654843E82BB893E82BB893E82BB893E795A8F3E795A8F3E795A8F3E795A8F3E795A8F3E2B34953E2B34953EFB4A9B3EFB4A9B3EFB4A9B3EFB4A9B3E0F3AA83EE73CB63EE73CB63ED8ACBD3ED8ACBD3E7D6AC53E0179CD3E0179CD3E0179CD3E0179CD3E0179CD3EB1DBD53ED91FF13EFAEE073FFAEE073F267B0D3FBCAD5B3FBCAD5B3FBCAD5B3F9A6F9D3F5F8CAA3F5F8CAA3F5F8CAA3F2F82B13F2F82B13FB173F43F34CF09408149154031611B4031611B40F7563640F7563640F8C73D40D1B55E402BAD82406B028840A8599940A85999404F1FA64049F5B340CE2ED340A51BEE401D861D41A6967441', 1795611282323);
INSERT INTO learned_work (fingerprint, variant, app, work, learned_at_ms) VALUES ('measuring 2 | street 2e0ede4f4ab50e57 858f07a8', 'street-160', 'default', X'0FBA7F3EC2C6833E35A0853E12D2853E0F8E873E21CC873E74F9913E203F933E71E4933E20D8943ED421953E1558953E879A953EEED5953E705E973E16B89B3E30B59D3E31619E3EF20EA23EB35EA53E540AB13E29D7B43E2125053FDF3D0E3F50BC1F3FA5C2353F12AA463F21F15D3F49F0623FBB00823F04AE8E3FB8A7993F39DD9B3FD33D9C3F989ABF3F1019E83FD2B3E83F6B69EF3FAF7B0F40A6183840837D4E400D81544076BA8240E04C1D41', 1795611279999);
INSERT INTO learned_work (fingerprint, variant, app, work, learned_at_ms) VALUES ('measuring 2 | street 2e0ede4f4ab50e57 858f07a8', 'street-192', 'default', X'0DB2503ECB20563E08DB583EE395613E5F1D623EADA26A3E60DB7F3E4B6C803E6B4D843EFCED8B3E70FD8B3EDB7FB03EAE64BD3E14F1C53EB60AE53EB7050A3FF49E343FA453483FFBD7743F20CC9E3FB669CF3FD148E83F34F4374072D95240', 1795611275497);
INSERT INTO learned_drift (fingerprint, executor, variant, factor, learned_at_ms) VALUES ('print', 'cpu/0', 'street-320', 1.25, 1763700000000);
INSERT INTO interference (fingerprint, executor, variant, beside, others, neighbours, factor, measured_at_ms) VALUES ('print', 'cpu/0', 'street-320', 'x', 1, 'cpu/1', 1.3, 1763700000000);
INSERT INTO core_factors (fingerprint, executor, variant, batch_size, threads, factor, measured_at_ms) VALUES ('print', 'cpu/0', 'street-320', 1, 2, 0.6, 1763700000000);
