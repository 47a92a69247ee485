// Owns what a person chose for this browser's camera, and its form; remembered in this browser.

import type { Settings } from './browserCamera'
import type { Choice } from './device'
import type { Deadlines } from './wire'

const KEY = 'edgebox.camera'
const NAME = /^[A-Za-z0-9._-]{1,64}$/
/** What a name may have, in words. */
export const NAME_RULE = '1 to 64 letters, digits, dots, dashes or underscores'

export interface Chosen {
  name: string
  app: string
  /** The uplink that it shares with other cameras; empty: none that it knows of. */
  site: string
  /** The model; empty: the box's default. */
  family: string
  /** A key of `DEADLINES`. */
  deadline: string
  rate_hz: number
  device: Choice
}

export const DEADLINES: Readonly<Record<string, { words: string; slo_ms: Deadlines }>> = {
  '100': { words: '100 ms', slo_ms: 100 },
  '200': { words: '200 ms', slo_ms: 200 },
  '300': { words: '300 ms', slo_ms: 300 },
  '500': { words: '500 ms', slo_ms: 500 },
  '1000': { words: '1 s', slo_ms: 1000 },
  '200,1000:0.3': { words: '200 ms; until 1 s an answer is worth 0.3', slo_ms: [[200, 1], [1000, 0.3]] },
}
export const RATES_HZ = [2, 5, 10, 15, 30]

export function isName(text: string): boolean {
  return NAME.test(text)
}

export function settingsOf({ name, app, site, family, deadline, rate_hz }: Chosen): Settings {
  return { name, app, ...(site && { site }), ...(family && { family }), rate_hz, slo_ms: DEADLINES[deadline]?.slo_ms ?? 300 }
}

/** What was chosen last; a name in the address (`?name=gate-3`) comes before it. `random` is in [0, 1). */
export function remembered(search: string, random: number): Chosen {
  const stored = read()
  const wanted = new URLSearchParams(search).get('name') ?? ''
  const text = (value: unknown, fallback: string) => (typeof value === 'string' && isName(value) ? value : fallback)
  return {
    name: text(wanted, text(stored.name, `phone-${Math.floor(100 + random * 900)}`)),
    app: text(stored.app, 'default'),
    site: text(stored.site, ''),
    family: text(stored.family, ''),
    deadline: Object.hasOwn(DEADLINES, String(stored.deadline)) ? String(stored.deadline) : '300',
    rate_hz: RATES_HZ.includes(Number(stored.rate_hz)) ? Number(stored.rate_hz) : 10,
    device: typeof stored.device === 'string' && stored.device ? stored.device : 'environment',
  }
}

export function remember(chosen: Chosen): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(chosen))
  } catch {
    // It still holds until the page is closed.
  }
}

function read(): Partial<Record<keyof Chosen, unknown>> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}')
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}
