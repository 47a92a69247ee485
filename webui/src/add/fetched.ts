// What is said and asked of a camera that the box fetches itself. Pure.

import type { Answers } from '../api/api-types'
import { UNKNOWN } from '../ui/format'
import type { Source } from '../api/types'

export type TestPicture = Answers['POST /v1/sources/test']

export interface Fields {
  url: string
  substream_url: string
  username: string
  password: string
  rate_hz: string
  motion_gate: boolean
}

export const NO_FIELDS: Fields = { url: '', substream_url: '', username: '', password: '', rate_hz: '', motion_gate: false }

/** The body of the request that adds or tests a source: what was left empty is left out. */
export function bodyOf(fields: Fields): Record<string, unknown> {
  const body: Record<string, unknown> = { url: fields.url.trim() }
  for (const name of ['substream_url', 'username', 'password'] as const) if (fields[name].trim() !== '') body[name] = name === 'password' ? fields[name] : fields[name].trim()
  const rate = fields.rate_hz.trim()
  if (rate !== '') body.rate_hz = numberOr(rate)
  if (fields.motion_gate) body.motion_gate = true
  return body
}

/** A number, also with a decimal comma. A text that is none goes as it is: the box says what is wrong with it. */
function numberOr(text: string): number | string {
  const number = Number(text.replace(',', '.'))
  return Number.isFinite(number) ? number : text
}

/** "0.21 of a core", "1.3 cores". */
export function coresText(cores: number | null): string {
  if (cores === null) return UNKNOWN
  return cores < 0.995 ? `${cores.toFixed(2)} of a core` : `${cores.toFixed(1)} cores`
}

/** One line about a source that gives pictures. */
export function liveWords(source: Source): string {
  const { decoding } = source
  const parts = [`${source.codec} ${source.width_px} × ${source.height_px} px`]
  if (source.stream === 'sub') parts.push('the smaller stream')
  if (source.decoder !== 'software') parts.push(`decoded with ${source.decoder}`)
  if (decoding.cores !== null) parts.push(`decoding takes ${coresText(decoding.cores)}`)
  if (decoding.still > 0) parts.push(`${decoding.still} still pictures left out`)
  return parts.join(' · ')
}
