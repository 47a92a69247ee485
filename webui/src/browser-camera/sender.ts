// Decides which frames are sent and how large: the sender's window.
//
// The same rules as edgebox/link/sender.py, which says why they are so; a test puts generated situations before
// both and compares every decision. One thing is added: a browser tells what of the frames has not left it yet
// (WebSocket.bufferedAmount), and that much is waiting for certain, whatever the estimates say.
//
// Every captured frame is counted exactly once: captured = sent + skipped + waiting. Pure: instants, in ns of the
// page's clock, come in as arguments.

import type { Advice } from '../api/types'
import { BandwidthEstimate, BytesPerPixel, messageBytes, quantile } from './bandwidth'

const SIDE_MIN_PX = 128
const SIDE_STEP_PX = 32
/** Kept free of every deadline: encoding, the result's way back, timers. */
const GUARD_NS = 5e6
/** So long without a frame on its way, and one is sent whatever the estimates say. */
const PROBE_NS = 1e9
const ANSWERS_KEPT = 20
const ANSWER_QUANTILE = 0.9
const QUALITY_DEFAULT = 85

/** A newer frame came while this one waited; not even the smallest size would do; more than asked for; no connection. */
export type SkipReason = 'window' | 'infeasible' | 'rate' | 'offline'

export interface Send {
  kind: 'send'
  frame: number
  width_px: number
  height_px: number
  quality: number
}

export interface Skip {
  kind: 'skip'
  frame: number
  reason: SkipReason
}

export type Decision = Send | Skip

type SizePx = readonly [width: number, height: number]

interface OnTheWay {
  frame: number
  sent_ns: number
  size_bytes: number
}

export interface WindowOptions {
  /** Of the camera's own picture. */
  width_px: number
  height_px: number
  /** Deadline of each frame, from its capture; sizes are chosen to make it. */
  slo_ns: number
  /** What cannot even make this is not sent: the last of several deadlines. */
  lastSlo_ns: number
  rate_hz: number
  unacknowledged_max: number
}

/** Which frames of a source are taken to come to a rate. */
export class Pace {
  /** When the last frame that was taken was due. */
  private slot_ns: number | null = null
  private taken_ns = 0

  /** Say whether a frame is taken, at the rate that holds now. */
  takes(captured_ns: number, rate_hz: number): boolean {
    const period_ns = rounded(1e9 / rate_hz)
    // The first frame may come late (a source warms up); it does not set the phase.
    // Else it counts from the last frame, at the rate of now: a camera that was slowed down does not wait for the
    // end of a slow period when it may go on, nor for the quarter of one by which its last frame was early.
    const early_ns = Math.floor(period_ns / 4)
    const due_ns = this.slot_ns === null ? captured_ns - 2 * period_ns : Math.min(this.slot_ns, this.taken_ns + early_ns) + period_ns
    // A quarter of a period early is jitter of the source; more is a faster source. A frame up to two periods
    // late does not delay those after it, so jitter costs no frames.
    if (captured_ns < due_ns - early_ns) return false
    this.slot_ns = Math.max(due_ns, captured_ns - 2 * period_ns)
    this.taken_ns = captured_ns
    return true
  }
}

/** One connection's window: events in, decisions out. After a `Send` the caller encodes, and says so with `encoded`. */
export class SenderWindow {
  capturedTotal = 0
  sentTotal = 0
  readonly skipped: Record<SkipReason, number> = { window: 0, infeasible: 0, rate: 0, offline: 0 }
  private readonly bandwidth = new BandwidthEstimate()
  private readonly weight = new BytesPerPixel()
  private advice: Advice | null = null
  private held: { frame: number; captured_ns: number } | null = null
  private onTheWay: OnTheWay[] = []
  private answers_ns: number[] = []
  private lastAck_ns = 0
  private lastSend_ns: number | null = null
  private readonly pace = new Pace()

  constructor(private options: WindowOptions) {}

  /** Obey this advice from the next frame on. */
  advised(advice: Advice): void {
    this.advice = advice
  }

  /** Aim at other deadlines from the next frame on. */
  deadlines(slo_ns: number, lastSlo_ns: number): void {
    this.options = { ...this.options, slo_ns, lastSlo_ns }
  }

  /** Learn how long the box took for a frame, from its arrival there to the result here. */
  answered(box_ns: number): void {
    this.answers_ns.push(box_ns)
    if (this.answers_ns.length > ANSWERS_KEPT) this.answers_ns.shift()
  }

  /** Take a new frame; decide about it and about the one that waited. `unsent_bytes` are still in this browser. */
  captured(frame: number, captured_ns: number, now_ns: number, unsent_bytes = 0): Decision[] {
    this.capturedTotal += 1
    if (!this.pace.takes(captured_ns, this.sendRate_hz())) return [this.skip(frame, 'rate')]
    const decisions: Decision[] = this.held ? [this.skip(this.held.frame, 'window')] : []
    this.held = { frame, captured_ns }
    return decisions.concat(this.release(now_ns, unsent_bytes))
  }

  /** Note what a frame weighs that is being sent now. */
  encoded(frame: number, size_bytes: number, pixels: number, sent_ns: number): void {
    this.weight.add(size_bytes, pixels)
    const entry = this.onTheWay.find((one) => one.frame === frame)
    if (entry) Object.assign(entry, { size_bytes, sent_ns })
  }

  /** Note an ack, `base_ns` being the least round trip; release the frame that waited for it. */
  acknowledged(frame: number, now_ns: number, base_ns: number, unsent_bytes = 0): Decision[] {
    const at = this.onTheWay.findIndex((one) => one.frame === frame)
    const entry = this.onTheWay[at]
    if (!entry) return []
    // Acks come in the order of the frames, so older frames are through as well.
    this.onTheWay = this.onTheWay.slice(at + 1)
    this.bandwidth.add(entry.size_bytes, entry.sent_ns, now_ns, base_ns)
    this.lastAck_ns = now_ns
    return this.release(now_ns, unsent_bytes)
  }

  /** Give up the frame that waits: the connection is gone or nothing more shall be sent. */
  close(): Decision[] {
    const { held } = this
    this.held = null
    return held ? [this.skip(held.frame, 'offline')] : []
  }

  /** Frames on their way. */
  get unacknowledged(): number {
    return this.onTheWay.length
  }

  /** Number of the frame that waits outside the window. */
  get waiting(): number | null {
    return this.held?.frame ?? null
  }

  /** The lowest of what the box and this side believe; null: nothing is known. */
  bandwidth_bps(now_ns: number): number | null {
    const oldest = this.onTheWay[0]
    const own = oldest
      ? this.bandwidth.bps(now_ns, oldest.size_bytes, Math.max(oldest.sent_ns, this.lastAck_ns))
      : this.bandwidth.bps(now_ns)
    const known = [own, this.advice?.bandwidth_bps].filter((bps): bps is number => !!bps)
    return known.length ? Math.min(...known) : null
  }

  private sendRate_hz(): number {
    return this.advice ? Math.min(this.options.rate_hz, this.advice.rate_hz) : this.options.rate_hz
  }

  private release(now_ns: number, unsent_bytes: number): Decision[] {
    const { held } = this
    if (!held || this.onTheWay.length >= this.options.unacknowledged_max) return []
    this.held = null
    const size = this.size(held.captured_ns, now_ns, unsent_bytes)
    if (!size) return [this.skip(held.frame, 'infeasible')]
    this.sentTotal += 1
    this.lastSend_ns = now_ns
    this.onTheWay.push({ frame: held.frame, sent_ns: now_ns, size_bytes: rounded(this.expected_bytes(size)) })
    const quality = this.advice?.quality ?? QUALITY_DEFAULT
    return [{ kind: 'send', frame: held.frame, width_px: size[0], height_px: size[1], quality }]
  }

  /** The largest size that makes it, null if there is none. */
  private size(captured_ns: number, now_ns: number, unsent_bytes: number): SizePx | null {
    const { width_px, height_px, slo_ns, lastSlo_ns } = this.options
    const sizes = sendSizes([width_px, height_px], this.advice)
    const bps = this.bandwidth_bps(now_ns)
    if (bps === null || this.weight.value() === null) return sizes[0] as SizePx
    const left_ns = captured_ns + slo_ns - now_ns
    const backlog_bits = Math.max(this.backlog_bits(bps, now_ns), unsent_bytes * 8)
    const inTime_bits = (bps * (left_ns - GUARD_NS - this.box_ns(ANSWER_QUANTILE))) / 1e9 - backlog_bits
    const sustained_bits = bps / this.sendRate_hz()
    const fitting = sizes.find((size) => this.expected_bytes(size) * 8 <= Math.min(inTime_bits, sustained_bits))
    if (fitting) return fitting
    // A frame that is skipped is lost for certain: only if it would be even with luck.
    const smallest = sizes.at(-1) as SizePx
    const withLuck_bits = (bps * (left_ns + lastSlo_ns - slo_ns - this.box_ns(0))) / 1e9 - backlog_bits
    return this.expected_bytes(smallest) * 8 <= withLuck_bits || this.mustProbe(now_ns) ? smallest : null
  }

  private mustProbe(now_ns: number): boolean {
    if (this.onTheWay.length || this.lastSend_ns === null) return !this.onTheWay.length
    return now_ns - this.lastSend_ns >= PROBE_NS
  }

  private expected_bytes([width_px, height_px]: SizePx): number {
    return messageBytes(this.weight.value() ?? 0, width_px * height_px)
  }

  /** What of the frames on their way has probably not left yet. */
  private backlog_bits(bps: number, now_ns: number): number {
    const oldest = this.onTheWay[0]
    if (!oldest) return 0
    const bits = this.onTheWay.reduce((total, entry) => total + entry.size_bytes, 0) * 8
    const since_ns = Math.max(oldest.sent_ns, this.lastAck_ns)
    return Math.max(0, bits - (bps * Math.max(0, now_ns - since_ns)) / 1e9)
  }

  /** A quantile of what the box takes, 0 while unknown. */
  private box_ns(share: number): number {
    return quantile(this.answers_ns, share) ?? 0
  }

  private skip(frame: number, reason: SkipReason): Skip {
    this.skipped[reason] += 1
    return { kind: 'skip', frame, reason }
  }
}

/** The sizes at which a camera may send, largest first: steps of the longer side. */
export function sendSizes([ownWidth, ownHeight]: SizePx, advice: Advice | null): SizePx[] {
  const scale = advice ? Math.min(1, advice.width_px / ownWidth, advice.height_px / ownHeight) : 1
  const long_px = Math.max(ownWidth, ownHeight)
  const largest = Math.max(1, rounded(long_px * scale))
  const sides = [largest]
  const firstStep = Math.floor((largest - 1) / SIDE_STEP_PX) * SIDE_STEP_PX
  for (let side = firstStep; side >= SIDE_MIN_PX; side -= SIDE_STEP_PX) sides.push(side)
  return sides.map((side) => [
    Math.max(1, rounded((ownWidth * side) / long_px)),
    Math.max(1, rounded((ownHeight * side) / long_px)),
  ])
}

/** To the nearest integer, halves to the even one, as Python does: both sides must come to the same size. */
function rounded(value: number): number {
  const floor = Math.floor(value)
  if (value - floor !== 0.5) return Math.round(value)
  return floor % 2 === 0 ? floor : floor + 1
}
