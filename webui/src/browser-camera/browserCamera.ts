// Owns a camera's life at the box: connect, connect again, take leave. As edgebox/camera/daemon.py does it.

import { reconnectDelayMs } from '../api/reconnect'
import type { Advice, Counts } from '../api/types'
import { capitalised } from '../ui/format'
import { FrameAccounting, firstAndLast_ns, type Recent } from './frameAccounting'
import { Link, type End, type Pictures } from './link'
import { Pace } from './sender'
import { now_ns, type Deadlines, type Hello, type Result } from './wire'

/** Longer than a viewer's: a box has many cameras. */
const RECONNECT_MAX_MS = 15_000
/** The box notices a half-open connection after 30 s; until then the name may be our own. */
const IN_USE_PATIENCE_MS = 45_000
/** How much longer than the last deadline the last answers are waited for. */
const AFTER_SLO_MS = 1_000
const WORTH_ANOTHER_TRY: ReadonlySet<string> = new Set(['camera_in_use', 'box_full', 'no_capacity', 'silent', 'too_slow', 'too_fast', 'unavailable'])
/** Codes of refusals that a pairing code mends: it may be no camera, or none of this name. */
export const UNPAIRED = 'unauthorized'
export const OTHER_NAME = 'forbidden'

export interface Settings {
  name: string
  app: string
  site?: string
  family?: string
  slo_ms: Deadlines
  rate_hz: number
}

export interface SizePx {
  width: number
  height: number
}

export type Phase = 'connecting' | 'live' | 'waiting' | 'ended'

export interface Status extends Recent {
  phase: Phase
  /** The last thing that a person should know. */
  remark: string
  advice: Advice | null
  bandwidth_bps: number | null
  /** The last frame that was sent, as it was scaled. */
  sent_px: SizePx | null
  /** The variant that answered last. */
  variant: string | null
  counts: Counts
  skipped: Readonly<Record<string, number>>
}

export interface CameraListener {
  /** The phase or the remark has changed. */
  onChange(): void
  onResult(result: Result, captured_ns: number, labels: readonly string[]): void
  /** The box refused this camera for good. */
  onRefused(message: string, code: string): void
  /** Whether the box lets this browser be a camera. A page cannot see why a WebSocket was refused. Rejects if it does not answer. */
  mayConnect(): Promise<boolean>
}

export class BrowserCamera {
  private readonly accounting: FrameAccounting
  private readonly instance = instanceName()
  private readonly pace = new Pace()
  private link: Link | null = null
  private phase: Phase = 'connecting'
  private remark = ''
  private variant: string | null = null
  private labels: readonly string[] = []
  private frames = 0
  private attempt = 0
  private wasWelcomed = false
  private inUseSince_ms: number | null = null
  private retryTimer: number | undefined

  constructor(
    private readonly address: string,
    private readonly settings: Settings,
    private size_px: SizePx,
    private readonly pictures: Pictures,
    private readonly listener: CameraListener,
  ) {
    this.accounting = new FrameAccounting(settings.slo_ms)
  }

  start(): void {
    this.connect()
  }

  /** Try at once if the connection is lost and a try is being waited for; otherwise do nothing. */
  retryNow(): void {
    if (this.phase === 'waiting' && !this.link) this.connect()
  }

  /** Take a picture of the video if one is due. Before the first welcome nothing is captured. */
  captured(captured_ns: number): void {
    if (!this.wasWelcomed || this.phase === 'ended' || !this.pace.takes(captured_ns, this.settings.rate_hz)) return
    this.frames += 1
    this.accounting.captured(this.frames, captured_ns)
    if (this.link) this.link.captured(this.frames, captured_ns)
    else this.accounting.skip(this.frames, 'offline', now_ns())
  }

  /** The video has another size now (a phone was turned): a hello cannot be changed, so say another. */
  resized(size_px: SizePx): void {
    if (this.phase === 'ended' || (size_px.width === this.size_px.width && size_px.height === this.size_px.height)) return
    this.size_px = size_px
    this.link?.bye('its picture has another size now')
    this.connect()
  }

  /** Wait for the last answers, for a little longer than the last deadline; then take leave. */
  async finish(reason: string): Promise<void> {
    if (this.phase === 'ended') return
    this.change('ended', '')
    this.link?.settle()
    const until_ms = performance.now() + firstAndLast_ns(this.settings.slo_ms)[1] / 1e6 + AFTER_SLO_MS
    while (this.link && this.accounting.openCount && performance.now() < until_ms) {
      await new Promise((resolve) => window.setTimeout(resolve, 20))
    }
    this.leave(reason)
  }

  /** Take leave at once: the page may not run a moment longer. */
  leave(reason: string): void {
    window.clearTimeout(this.retryTimer)
    this.phase = 'ended'
    this.link?.bye(reason)
    this.link = null
    this.accounting.lost(now_ns())
    this.listener.onChange()
  }

  status(): Status {
    return {
      ...this.accounting.recent(now_ns()),
      phase: this.phase,
      remark: this.remark,
      advice: this.link?.advice ?? null,
      bandwidth_bps: this.link?.bandwidth_bps ?? null,
      sent_px: this.link?.sent ? { width: this.link.sent.width_px, height: this.link.sent.height_px } : null,
      variant: this.variant,
      counts: this.accounting.counts(),
      skipped: this.accounting.skipped,
    }
  }

  private connect(): void {
    window.clearTimeout(this.retryTimer)
    if (this.phase !== 'live') this.change('connecting', this.remark)
    const { name, ...settings } = this.settings
    const size = { width_px: this.size_px.width, height_px: this.size_px.height }
    const hello: Hello = { camera: name, instance: this.instance, ...settings, ...size, agent: 'edgebox-browser' }
    this.link = new Link(this.address, hello, this.accounting, this.pictures, {
      onWelcome: ({ labels, box }) => {
        this.labels = labels
        this.attempt = 0
        this.wasWelcomed = true
        this.inUseSince_ms = null
        this.change('live', `Connected to ${box}.`)
      },
      onResult: (result, captured_ns) => {
        this.variant = result.variant
        this.listener.onResult(result, captured_ns, this.labels)
      },
      onRemark: (text) => this.change(this.phase, text),
      onEnd: (end) => this.lost(end),
    })
  }

  private lost(end: End): void {
    this.link = null
    if (this.phase === 'ended') return
    if (end.kind === 'refused' && !this.isWorthAnotherTry(end.code)) return this.refused(end.message, end.code)
    const wait_ms = reconnectDelayMs(this.attempt, Math.random(), RECONNECT_MAX_MS)
    this.attempt += 1
    this.retryTimer = window.setTimeout(() => this.connect(), wait_ms)
    const why = end.kind === 'refused' ? `The box refuses for now: ${end.message}.` : `${capitalised(end.why)}.`
    this.change('waiting', `${why} Trying again in ${Math.max(1, Math.round(wait_ms / 1000))} s.`)
    if (end.kind === 'lost' && !end.welcomed) void this.askWhether()
  }

  /** Give up if the box does not let this browser in, rather than knock for ever. */
  private async askWhether(): Promise<void> {
    const may = await this.listener.mayConnect().catch(() => true)
    if (may || this.phase === 'live' || this.phase === 'ended') return
    this.refused('it is not paired with this box, or no longer, and needs a pairing code', UNPAIRED)
  }

  private refused(message: string, code: string): void {
    this.leave('')
    this.listener.onRefused(message, code)
  }

  private isWorthAnotherTry(code: string): boolean {
    if (code === 'camera_in_use') {
      this.inUseSince_ms ??= performance.now()
      return performance.now() - this.inUseSince_ms <= IN_USE_PATIENCE_MS
    }
    return WORTH_ANOTHER_TRY.has(code)
  }

  private change(phase: Phase, remark: string): void {
    this.phase = phase
    this.remark = remark
    this.listener.onChange()
  }
}

/** The same as long as this camera runs: so a reconnection replaces its own past, and no other tab's. */
function instanceName(): string {
  // randomUUID is kept from insecure pages; this is not.
  return [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
