// Owns the camera protocol's messages as a browser writes and reads them; docs/reference/protocol.md says what they mean. Pure.

import { objectOf } from '../api/json'
import type { Advice, ByReason, Detection } from '../api/types'

const FRAME_KIND = 70
const VERSION = 1
const HEADER_BYTES = 32

/** A deadline in ms, or several with the utility of an answer by each. */
export type Deadlines = number | ReadonlyArray<readonly [by_ms: number, utility: number]>

export interface Hello {
  camera: string
  instance: string
  slo_ms: Deadlines
  rate_hz: number
  width_px: number
  height_px: number
  app: string
  /** A name for the uplink that it shares with other cameras. */
  site?: string
  /** The model; the box's default if left out. */
  family?: string
  agent: string
}

export interface Report {
  captured: number
  sent: number
  skipped: ByReason
  on_time: number
  late: number
}

export type ToBox =
  | ({ type: 'hello'; versions: readonly number[] } & Hello)
  | ({ type: 'report' } & Report)
  | { type: 'pong'; id: number; camera_ns: number }
  | { type: 'ping'; id: number }
  | { type: 'error'; code: string; message: string; fatal: boolean }
  | { type: 'bye'; reason: string }

export interface SentFrameHeader {
  frame: number
  captured_ns: number
  sent_ns: number
  /** Of the camera's own picture, before scaling. */
  width_px: number
  height_px: number
  capturedTotal: number
}

export interface Welcome {
  type: 'welcome'
  box: string
  unacknowledged_max: number
  labels: readonly string[]
  advice: Advice
  /** The deadline that was set on the box, if one was. */
  slo_ms?: number | null
}

export interface Result {
  type: 'result'
  frame: number
  variant: string
  detections: readonly Detection[]
  advice: Advice
}

export type FromBox =
  | Welcome
  | Result
  | { type: 'ack'; frame: number; accepted: boolean; advice: Advice }
  | { type: 'drop'; frame: number; reason: string; advice: Advice }
  | { type: 'advice'; advice: Advice; slo_ms?: number | null }
  | { type: 'ping'; id: number }
  | { type: 'pong'; id: number }
  | { type: 'error'; code: string; message: string; fatal: boolean }
  | { type: 'bye'; reason?: string }

/** What each message must have to be understood; a newer box may send more. */
const FIELDS: Readonly<Record<FromBox['type'], Readonly<Record<string, 'number' | 'string' | 'boolean' | 'object'>>>> = {
  welcome: { unacknowledged_max: 'number', labels: 'object', advice: 'object' },
  ack: { frame: 'number', accepted: 'boolean', advice: 'object' },
  result: { frame: 'number', variant: 'string', detections: 'object', advice: 'object' },
  drop: { frame: 'number', reason: 'string', advice: 'object' },
  advice: { advice: 'object' },
  ping: { id: 'number' },
  pong: { id: 'number' },
  error: { code: 'string', message: 'string' },
  bye: {},
}

/** Read a text message; null when it is not understood. */
export function parseFromBox(text: string): FromBox | null {
  const fields = objectOf(text)
  if (fields === null) return null
  const { type } = fields
  if (typeof type !== 'string' || !Object.hasOwn(FIELDS, type)) return null
  const wanted = Object.entries(FIELDS[type as FromBox['type']])
  return wanted.every(([name, kind]) => typeof fields[name] === kind && fields[name] !== null) ? (fields as FromBox) : null
}

/** The binary message of one frame: the header, then the JPEG. */
export function frameMessage(header: SentFrameHeader, jpeg: ArrayBuffer): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(HEADER_BYTES + jpeg.byteLength)
  const view = new DataView(message.buffer)
  view.setUint8(0, FRAME_KIND)
  view.setUint8(1, VERSION)
  view.setUint16(2, HEADER_BYTES, true)
  view.setUint32(4, header.frame, true)
  view.setBigUint64(8, BigInt(header.captured_ns), true)
  view.setBigUint64(16, BigInt(header.sent_ns), true)
  view.setUint16(24, header.width_px, true)
  view.setUint16(26, header.height_px, true)
  view.setUint32(28, header.capturedTotal, true)
  message.set(new Uint8Array(jpeg), HEADER_BYTES)
  return message
}

/** The camera's clock: whole nanoseconds since this page was opened, exact in a double for 104 days. */
export function now_ns(): number {
  return to_ns(performance.now())
}

/** An instant of the browser's (`performance.now()`, a frame's times) on that clock. */
export function to_ns(instant_ms: number): number {
  return Math.round(instant_ms * 1e6)
}
