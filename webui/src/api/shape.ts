// Compares what the box sent with what it is described to send. Pure.

import { NAMED } from './api-shapes'

/** What a value must be; fields whose names end in "?" may be missing, and there may always be more. */
export type Shape =
  | 'number' | 'string' | 'boolean' | 'null' | 'unknown'
  | readonly ['named', string]
  | readonly ['const', unknown]
  | readonly ['array' | 'map', Shape]
  | readonly ['any' | 'tuple', ...Shape[]]
  | readonly ['object', Readonly<Record<string, Shape>>]

/** Where a value is not as described, and what belongs there: "keys[3].value must be a string"; null: it is all right. */
export function mismatch(value: unknown, shape: Shape, at = ''): string | null {
  if (typeof shape === 'string') {
    const fits = shape === 'unknown' || (shape === 'null' ? value === null : typeof value === shape)
    return fits ? null : complaint(at, shape === 'null' ? 'null' : `a ${shape}`)
  }
  switch (shape[0]) {
    case 'named':
      return mismatch(value, NAMED[shape[1]] ?? 'unknown', at)
    case 'const':
      return value === shape[1] ? null : complaint(at, JSON.stringify(shape[1]))
    case 'any':
      return anyOf(value, shape.slice(1) as Shape[], at)
    case 'array':
    case 'tuple':
      return listOf(value, shape as readonly ['array' | 'tuple', ...Shape[]], at)
    case 'map':
    case 'object':
      return fieldsOf(value, shape as readonly ['map', Shape] | readonly ['object', Readonly<Record<string, Shape>>], at)
  }
}

function anyOf(value: unknown, options: readonly Shape[], at: string): string | null {
  const complaints: string[] = []
  for (const option of options) {
    const found = mismatch(value, option, at)
    if (found === null) return null
    complaints.push(found)
  }
  // Of a value that may be null, what it must be otherwise says more.
  return complaints[0] ?? null
}

function listOf(value: unknown, [kind, ...items]: readonly ['array' | 'tuple', ...Shape[]], at: string): string | null {
  if (!Array.isArray(value) || (kind === 'tuple' && value.length !== items.length)) return complaint(at, kind === 'array' ? 'a list' : `a list of ${items.length}`)
  for (let n = 0; n < value.length; n += 1) {
    const found = mismatch(value[n], (kind === 'array' ? items[0] : items[n]) as Shape, `${at}[${n}]`)
    if (found !== null) return found
  }
  return null
}

function fieldsOf(value: unknown, [kind, fields]: readonly ['map', Shape] | readonly ['object', Readonly<Record<string, Shape>>], at: string): string | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return complaint(at, 'an object')
  const given = value as Readonly<Record<string, unknown>>
  const within = (name: string) => (at ? `${at}.${name}` : name)
  const wanted = kind === 'map' ? Object.keys(given).map((name) => [name, fields] as const) : Object.entries(fields)
  for (const [key, shape] of wanted) {
    const name = kind === 'object' ? key.replace(/\?$/, '') : key
    if (name !== key && given[name] === undefined) continue
    const found = mismatch(given[name], shape, within(name))
    if (found !== null) return found
  }
  return null
}

function complaint(at: string, wanted: string): string {
  return `${at || 'it'} must be ${wanted}`
}
