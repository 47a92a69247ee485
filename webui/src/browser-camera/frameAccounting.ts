// Counts how each captured frame ended, over all connections of a camera.
//
// As edgebox/camera/accounting.py keeps them. Every captured frame is open until it ends in exactly one of on time,
// late (by this browser's own clock) or dropped with a reason. `plan` are those that the box did not ask for, `sender` others that were never sent, `lost`
// those that were sent and never answered. Pure: instants come in as arguments.

import type { ByReason, Counts } from '../api/types'
import type { SkipReason } from './sender'
import type { Deadlines, Report } from './wire'

const RECENT_NS = 10e9

interface Step {
  by_ns: number
  utility: number
}

interface Open {
  captured_ns: number
  /** Rising; the first is the one that "on time" means. */
  deadlines: readonly Step[]
  sent: boolean
  acked_ns: number | null
}

interface Ended {
  at_ns: number
  onTime: boolean
  /** Null: it was not answered. */
  latency_ms: number | null
}

export interface Recent {
  onTimeShare: number | null
  /** Median, from the capture to the result's arrival. */
  latency_ms: number | null
  /** Answers a second. */
  fps: number | null
}

export class FrameAccounting {
  readonly skipped: Record<string, number> = {}
  private capturedCount = 0
  private sentCount = 0
  private accepted = 0
  private onTime = 0
  private late = 0
  private utilityLate = 0
  private readonly droppedFor: Record<string, number> = {}
  private readonly open = new Map<number, Open>()
  private readonly ended: Ended[] = []
  private atHello: Report
  private inForce: readonly Step[]

  constructor(deadlines: Deadlines) {
    this.inForce = stepsOf(deadlines)
    this.atHello = this.totals()
  }

  /** Frames that have not ended yet. */
  get openCount(): number {
    return this.open.size
  }

  /** Judge the frames that are captured from now on by other deadlines. */
  deadlines(deadlines: Deadlines): void {
    this.inForce = stepsOf(deadlines)
  }

  /** A hello was answered: reports count from here. */
  connected(): void {
    this.atHello = this.totals()
  }

  captured(frame: number, captured_ns: number): void {
    this.capturedCount += 1
    this.open.set(frame, { captured_ns, deadlines: this.inForce, sent: false, acked_ns: null })
  }

  /** End a frame that will not be sent. */
  skip(frame: number, reason: SkipReason, now_ns: number): void {
    // What the box did not ask for is no miss: it counts so, too.
    if (this.drop(frame, reason === 'rate' ? 'plan' : 'sender', now_ns)) this.skipped[reason] = (this.skipped[reason] ?? 0) + 1
  }

  /** Note that a frame was handed to the socket. */
  sent(frame: number): void {
    const entry = this.open.get(frame)
    if (!entry) return
    entry.sent = true
    this.sentCount += 1
  }

  acked(frame: number, accepted: boolean, now_ns: number): void {
    const entry = this.open.get(frame)
    if (!entry || entry.acked_ns !== null) return
    entry.acked_ns = now_ns
    if (accepted) this.accepted += 1
  }

  /** End a frame with its result; the time from the ack's arrival to the result's, null if it was not open. */
  answered(frame: number, now_ns: number): number | null {
    const entry = this.open.get(frame)
    if (!entry) return null
    this.open.delete(frame)
    const total_ns = now_ns - entry.captured_ns
    const onTime = total_ns <= (entry.deadlines[0]?.by_ns ?? 0)
    if (onTime) this.onTime += 1
    else {
      this.late += 1
      this.utilityLate += entry.deadlines.find(({ by_ns }) => total_ns <= by_ns)?.utility ?? 0
    }
    this.note({ at_ns: now_ns, onTime, latency_ms: total_ns / 1e6 })
    return entry.acked_ns === null ? 0 : now_ns - entry.acked_ns
  }

  /** End a frame that will not be answered; whether it was open. */
  drop(frame: number, reason: string, now_ns: number): boolean {
    if (!this.open.delete(frame)) return false
    this.droppedFor[reason] = (this.droppedFor[reason] ?? 0) + 1
    if (reason !== 'plan') this.note({ at_ns: now_ns, onTime: false, latency_ms: null })
    return true
  }

  /** End all open frames: nobody will answer them any more. */
  lost(now_ns: number): void {
    for (const [frame, { sent }] of [...this.open]) {
      if (sent) this.drop(frame, 'lost', now_ns)
      else this.skip(frame, 'offline', now_ns)
    }
  }

  /** What was counted since the hello. */
  report(): Report {
    const now = this.totals()
    const then = this.atHello
    const skipped = Object.entries(now.skipped).map(([reason, amount]) => [reason, amount - (then.skipped[reason] ?? 0)])
    return {
      captured: now.captured - then.captured,
      sent: now.sent - then.sent,
      skipped: Object.fromEntries(skipped.filter(([, amount]) => amount)),
      on_time: now.on_time - then.on_time,
      late: now.late - then.late,
    }
  }

  /** All frames so far, in the form in which the box counts them. */
  counts(): Counts {
    return {
      captured: this.capturedCount,
      accepted: this.accepted,
      on_time: this.onTime,
      late: this.late,
      pending: this.open.size,
      dropped: { ...this.droppedFor },
      utility: this.onTime + this.utilityLate,
      mismatches: 0,
    }
  }

  /** What ended in the last 10 s. */
  recent(now_ns: number): Recent {
    const ended = this.ended.filter(({ at_ns }) => at_ns >= now_ns - RECENT_NS)
    const answers = ended.flatMap(({ latency_ms }) => latency_ms ?? []).sort((a, b) => a - b)
    const span_ns = now_ns - (ended[0]?.at_ns ?? now_ns)
    return {
      onTimeShare: ended.length ? ended.filter(({ onTime }) => onTime).length / ended.length : null,
      latency_ms: answers[Math.trunc(answers.length / 2)] ?? null,
      fps: span_ns >= 1e9 ? answers.length / (span_ns / 1e9) : null,
    }
  }

  private totals(): Report {
    const skipped: ByReason = { ...this.skipped }
    return { captured: this.capturedCount, sent: this.sentCount, skipped, on_time: this.onTime, late: this.late }
  }

  private note(ended: Ended): void {
    this.ended.push(ended)
    while ((this.ended[0] as Ended).at_ns < ended.at_ns - RECENT_NS) this.ended.shift()
  }
}

function stepsOf(deadlines: Deadlines): readonly Step[] {
  const pairs = typeof deadlines === 'number' ? [[deadlines, 1] as const] : deadlines
  return pairs.map(([by_ms, utility]) => ({ by_ns: Math.round(by_ms * 1e6), utility }))
}

/** The first deadline and the last, in ns. */
export function firstAndLast_ns(deadlines: Deadlines): readonly [number, number] {
  const steps = stepsOf(deadlines)
  return [steps[0]?.by_ns ?? 0, steps.at(-1)?.by_ns ?? 0]
}
