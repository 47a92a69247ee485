import { expect, test } from 'vitest'

import { bytes, type ConfigKey, grouped, matching, numberOf, packagesWith, SET, written } from '../src/settings/configuration'

function key(name: string, value: ConfigKey['value'], origin: ConfigKey['origin'] = 'default', doc = ''): ConfigKey {
  return { key: name, value, default: value, origin, secret: false, expected: 'a text', doc }
}

const KEYS = [
  key('server.host', '0.0.0.0', 'file', 'Address to listen on'),
  key('server.port', 8787, 'default', 'Port to listen on'),
  key('limits.cameras_max', 64),
  key('storage.path', '/data/box.sqlite3', 'environment'),
]

test('what was set comes first, the rest by section', () => {
  expect(grouped(KEYS).map(({ title, keys }) => [title, keys.map((each) => each.key)])).toEqual([
    [SET, ['server.host', 'storage.path']],
    ['[server]', ['server.port']],
    ['[limits]', ['limits.cameras_max']],
  ])
  expect(grouped([])).toEqual([])
})

test('a search finds keys that have all its words, in name, value, origin or meaning', () => {
  const found = (search: string) => matching(KEYS, search).map((each) => each.key)
  expect(found('')).toHaveLength(4)
  expect(found('LISTEN on')).toEqual(['server.host', 'server.port'])
  expect(found('listen 8787')).toEqual(['server.port'])
  expect(found('environment')).toEqual(['storage.path'])
  expect(found('listen sqlite')).toEqual([])
})

test('packages are found by name and licence', () => {
  const packages = [{ name: 'aiohttp', version: '3', licence: 'Apache-2.0 AND MIT' }, { name: 'odd', version: '1', licence: null }]
  expect(packagesWith(packages, 'mit').map(({ name }) => name)).toEqual(['aiohttp'])
  expect(packagesWith(packages, 'odd').map(({ name }) => name)).toEqual(['odd'])
})

test('values look as in TOML', () => {
  expect(written('a "b"')).toBe('"a \\"b\\""')
  expect(written(['a', 'b'])).toBe('["a", "b"]')
  expect(written(true)).toBe('true')
  expect(written(0.05)).toBe('0.05')
})

test('numbers are read from the configuration by name', () => {
  expect(numberOf(KEYS, 'limits.cameras_max')).toBe(64)
  expect(numberOf(KEYS, 'server.host')).toBeNull()
  expect(numberOf(KEYS, 'none')).toBeNull()
})

test('bytes are written in the unit that keeps them short', () => {
  const shown = [0, 999, 1_000, 9_949, 9_950, 999_499, 999_500, 453_000, 57_300_000_000, 5e12].map((value) => bytes(value).replace('\u202f', ' '))
  expect(shown).toEqual(['0 B', '999 B', '1.0 kB', '9.9 kB', '10 kB', '999 kB', '1.0 MB', '453 kB', '57 GB', '5.0 TB'])
  expect(bytes(null)).toBe('–')
})
