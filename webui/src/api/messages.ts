// Reads what the box sends on /v1/ui. Pure.

import { ANSWERS } from './api-shapes'
import { objectOf, type Fields } from './json'
import { mismatch } from './shape'
import { timelineMismatch, type TimelineUpdate } from '../scheduler/timeline'
import type { BoxState, LiveFrameHeader } from './types'

export interface ShownFrame {
  header: LiveFrameHeader
  jpeg: Uint8Array<ArrayBuffer>
}

/** What a text message is; `unreadable`: not as described, as from a box of another version. */
export type Message =
  | { kind: 'state'; state: BoxState }
  | { kind: 'timeline'; update: TimelineUpdate }
  | { kind: 'unreadable'; why: string; version: string | null }

/** Read a text message; null for one of another type: a newer box may send messages this page does not know. */
export function parseMessage(text: string): Message | null {
  const document = objectOf(text)
  if (document?.['type'] === 'state') {
    const why = mismatch(document, ANSWERS['GET /v1/state'] ?? 'unknown')
    return why === null ? { kind: 'state', state: document as unknown as BoxState } : { kind: 'unreadable', why: `state: ${why}`, version: versionIn(document) }
  }
  if (document?.['type'] !== 'timeline') return null
  const why = timelineMismatch(document)
  return why === null ? { kind: 'timeline', update: document as unknown as TimelineUpdate } : { kind: 'unreadable', why: `timeline: ${why}`, version: null }
}

function versionIn({ box }: Fields): string | null {
  const version = typeof box === 'object' && box !== null ? (box as Fields)['version'] : null
  return typeof version === 'string' ? version : null
}

/** A frame: u32 little-endian length of the header, the header (JSON), the JPEG. Null when malformed. */
export function parseFrame(message: ArrayBuffer): ShownFrame | null {
  if (message.byteLength < 4) return null
  const headerBytes = new DataView(message).getUint32(0, true)
  const jpegAt = 4 + headerBytes
  if (jpegAt >= message.byteLength) return null
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(message, 4, headerBytes))
    const header = objectOf(text) as unknown as LiveFrameHeader | null
    if (header === null || mismatch(header, ['named', 'LiveFrameHeader']) !== null || !(header.width_px > 0) || !(header.height_px > 0)) return null
    // A view, not a copy: the frame may be replaced by a newer one before it is ever decoded.
    return { header, jpeg: new Uint8Array(message, jpegAt) }
  } catch {
    return null
  }
}
