// The style sheets' modules: every class that a component names is there, and every class is used.

import { expect, test } from 'vitest'

const sheets = import.meta.glob<Record<string, string>>('../src/**/*.module.css', { import: 'default', eager: true })
const components = import.meta.glob<string>('../src/**/*.tsx', { query: '?raw', import: 'default', eager: true })

/** What a component looks up by a value, which a search for its name does not find: `styles[kind]`. */
const LOOKED_UP = /\[(\w+|\w+\.\w+)\]/

function resolved(from: string, path: string): string {
  return new URL(path, new URL(from, 'file:///test/')).pathname.replace('/', '../')
}

const used = new Map(Object.keys(sheets).map((path) => [path, { names: new Set<string>(), lookedUp: false }]))
for (const [path, text] of Object.entries(components)) {
  for (const [, name, from] of text.matchAll(/import (\w+) from '(.*\.module\.css)'/g)) {
    const sheet = used.get(resolved(path, from as string))
    test(`${path} imports a sheet that exists: ${from}`, () => expect(sheet).toBeDefined())
    for (const [, each] of text.matchAll(new RegExp(`(?<!['/])\\b${name}\\.(\\w+)`, 'g'))) sheet?.names.add(each as string)
    if (sheet && new RegExp(`\\b${name}${LOOKED_UP.source}`).test(text)) sheet.lookedUp = true
  }
}

test.each([...used])('%s has what is used of it, and nothing else', (path, { names, lookedUp }) => {
  const classes = new Set(Object.keys(sheets[path] ?? {}))
  expect([...names].filter((name) => !classes.has(name))).toEqual([])
  if (!lookedUp) expect([...classes].filter((name) => !names.has(name))).toEqual([])
})
