// The configuration and the system as the box tells of them, found by words, written for people. Pure.

import type { ConfigKey, Package, System } from '../api/api-types'
import { UNKNOWN, isKnown } from '../ui/format'

export type { ConfigKey, Package, System }
export type Origin = ConfigKey['origin']
export type Value = ConfigKey['value']

/** Whether somebody has set a key, even to its default. */
export function isSet({ origin }: ConfigKey): boolean {
  return origin !== 'default'
}

/** Those keys that have every word of a search in their name, value, origin or meaning. */
export function matching(keys: readonly ConfigKey[], search: string): ConfigKey[] {
  const words = wordsOf(search)
  return keys.filter(({ key, value, origin, doc }) => {
    const text = `${key} ${written(value)} ${origin} ${doc}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
}

/** Those packages that have every word of a search in their name or licence. */
export function packagesWith(packages: readonly Package[], search: string): Package[] {
  const words = wordsOf(search)
  return packages.filter(({ name, licence }) => {
    const text = `${name} ${licence ?? ''}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
}

function wordsOf(search: string): string[] {
  return search.toLowerCase().split(/\s+/).filter(Boolean)
}

/** Keys under headings: what was set first, the rest by section, each in the box's own order. */
export function grouped(keys: readonly ConfigKey[]): Array<{ title: string; keys: ConfigKey[] }> {
  const groups = new Map<string, ConfigKey[]>()
  for (const key of [...keys.filter(isSet), ...keys.filter((each) => !isSet(each))]) {
    const title = isSet(key) ? SET : `[${key.key.split('.')[0]}]`
    groups.set(title, [...(groups.get(title) ?? []), key])
  }
  return [...groups].map(([title, found]) => ({ title, keys: found }))
}

/** The heading of what was set. */
export const SET = 'Set on this box'

/** A value as TOML writes it. */
export function written(value: Value): string {
  return JSON.stringify(value).replaceAll('","', '", "')
}

/** The value of one key, if it is there and of that type. */
export function numberOf(keys: readonly ConfigKey[], name: string): number | null {
  const value = keys.find(({ key }) => key === name)?.value
  return typeof value === 'number' ? value : null
}

/** Bytes in the unit that keeps them short; powers of 1000, as disks are sold. */
export function bytes(value: number | null | undefined): string {
  if (!isKnown(value)) return UNKNOWN
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let scaled = value
  let at = 0
  while (scaled >= 999.5 && at < units.length - 1) {
    scaled /= 1000
    at += 1
  }
  return `${at > 0 && scaled < 9.95 ? scaled.toFixed(1) : Math.round(scaled)}\u202f${units[at]}`
}
