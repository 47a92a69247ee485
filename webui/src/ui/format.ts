// Numbers for people: every figure with its unit, short enough to stay in its place. Pure, but for what day it is.

/** Stands for a value that is not known yet. */
export const UNKNOWN = '–'

/** Narrow no-break space: keeps a number and its unit on one line. */
const GAP = '\u202f'

const integers = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })

export function isKnown(value: number | null | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

export function count(value: number | null | undefined): string {
  return isKnown(value) ? integers.format(value) : UNKNOWN
}

/** A share as a percentage, rounded down: 100 % means all of them, never nearly all. More than all, as of one time to another, is rounded. */
export function percent(share: number | null | undefined, digits = 1): string {
  if (!isKnown(share)) return UNKNOWN
  const scale = 10 ** digits
  // The small addend undoes binary fractions: 0.998 * 1000 is 997.9999...
  const floored = Math.floor(share * 100 * scale + 1e-6) / scale
  return `${share >= 1 ? integers.format(share * 100) : floored.toFixed(digits)}${GAP}%`
}

function significant(value: number): string {
  return Math.abs(value) < 9.95 ? value.toFixed(1) : integers.format(value)
}

export function milliseconds(value: number | null | undefined): string {
  return isKnown(value) ? `${significant(value)}${GAP}ms` : UNKNOWN
}

export function watts(value: number | null | undefined): string {
  return isKnown(value) ? `${significant(value)}${GAP}W` : UNKNOWN
}

export function microseconds(value: number | null | undefined): string {
  if (!isKnown(value)) return UNKNOWN
  return value >= 1000 ? milliseconds(value / 1000) : `${integers.format(value)}${GAP}µs`
}

export function bitrate(bps: number | null | undefined): string {
  if (!isKnown(bps)) return UNKNOWN
  if (bps >= 999_500_000) return `${significant(bps / 1e9)}${GAP}Gbit/s`
  if (bps >= 999_500) return `${significant(bps / 1e6)}${GAP}Mbit/s`
  return `${integers.format(bps / 1e3)}${GAP}kbit/s`
}

export function rate(hz: number | null | undefined): string {
  return isKnown(hz) ? (Number.isInteger(hz) ? String(hz) : hz.toFixed(1)) : UNKNOWN
}

/** A rate of frames with its unit, as the box writes it in its reasons. */
export function frameRate(hz: number | null | undefined): string {
  return `${rate(hz)}${GAP}frames/s`
}

/** A duration in its two largest units: "3 d 4 h", "5 min 12 s". */
export function duration(seconds: number | null | undefined): string {
  if (!isKnown(seconds)) return UNKNOWN
  const whole = Math.max(0, Math.floor(seconds))
  const units: Array<[number, string]> = [[86_400, 'd'], [3_600, 'h'], [60, 'min'], [1, 's']]
  const first = units.findIndex(([size]) => whole >= size)
  if (first === -1) return `0${GAP}s`
  const parts: string[] = []
  let rest = whole
  for (const [size, name] of units.slice(first, first + 2)) {
    const amount = Math.floor(rest / size)
    rest -= amount * size
    if (amount > 0 || parts.length === 0) parts.push(`${amount}${GAP}${name}`)
  }
  return parts.join(' ')
}

/** The time of day where the viewer is, with the day where that is not today: boxes and their events run for months. */
export function clockTime(at_ms: number): string {
  const at = new Date(at_ms)
  const time = at.toLocaleTimeString('en-GB', { hour12: false })
  return at.toDateString() === new Date().toDateString() ? time : `${dayOf(at)}, ${time}`
}

/** A day where the viewer is: "5 Mar". */
export function dayOf(at: Date): string {
  return at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
}

export function plural(amount: number, one: string, many = `${one}s`): string {
  return `${count(amount)} ${amount === 1 ? one : many}`
}

/** With a capital letter in front. */
export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
