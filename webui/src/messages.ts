// Reads what the box sends on /v1/ui. Pure.

import { objectOf } from './json'
import type { BoxState, FrameHeader } from './types'

export interface ShownFrame {
  header: FrameHeader
  jpeg: Uint8Array<ArrayBuffer>
}

/** A state document, or null for any other text: a newer box may send messages this page does not know. */
export function parseState(text: string): BoxState | null {
  const document = objectOf(text) as Partial<BoxState> | null
  if (document === null || document.type !== 'state' || !document.box || !Array.isArray(document.cameras)) return null
  return document as BoxState
}

/** A frame: u32 little-endian length of the header, the header (JSON), the JPEG. Null when malformed. */
export function parseFrame(message: ArrayBuffer): ShownFrame | null {
  if (message.byteLength < 4) return null
  const headerBytes = new DataView(message).getUint32(0, true)
  const jpegAt = 4 + headerBytes
  if (jpegAt >= message.byteLength) return null
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(message, 4, headerBytes))
    const header = JSON.parse(text) as FrameHeader
    if (typeof header.camera !== 'string' || !(header.width_px > 0) || !(header.height_px > 0)) return null
    // A view, not a copy: the frame may be replaced by a newer one before it is ever decoded.
    return { header, jpeg: new Uint8Array(message, jpegAt) }
  } catch {
    return null
  }
}
