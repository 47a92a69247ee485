// Owns one connection to the box, from its hello to its end: messages in, frames out.
//
// Decides nothing: the sender's window says what is sent, the accounting how frames end. A browser cannot send a
// WebSocket's own ping, so the round trip is measured with the protocol's.

import type { Advice } from '../api/types'
import { firstAndLast_ns, type FrameAccounting } from './frameAccounting'
import { SenderWindow, type Decision, type Send } from './sender'
import { frameMessage, now_ns, parseFromBox, type Deadlines, type FromBox, type Hello, type Result, type ToBox, type Welcome } from './wire'

/** To connect, and to be welcomed. */
const WELCOME_TIMEOUT_MS = 10_000
/** The box is asked every second; so long without a word and it is gone. */
const SILENCE_MAX_MS = 10_000
const PERIOD_MS = 1_000
const UNACKNOWLEDGED_MAX = 2

/** Where a frame's pixels come from. */
export interface Pictures {
  /** Keep the picture that was just captured: it has to wait. */
  hold(): void
  /** Scale and encode the picture that was just captured, or the one that is held; in the order of the calls. */
  encode(which: 'live' | 'held', send: Send): Promise<ArrayBuffer>
}

/** How a connection ended: the box said why not, or it broke, before or after its welcome, which is worth another try. */
export type End = { kind: 'refused'; code: string; message: string } | { kind: 'lost'; why: string; welcomed: boolean }

export interface LinkListener {
  onWelcome(welcome: Welcome): void
  onResult(result: Result, captured_ns: number): void
  /** A sentence for a person. */
  onRemark(text: string): void
  /** The last thing that is heard of a connection; not after `bye`. */
  onEnd(end: End): void
}

interface Captured {
  captured_ns: number
  capturedTotal: number
}

export class Link {
  advice: Advice | null = null
  /** The size of the last frame that was handed to the socket. */
  sent: Send | null = null
  private sender: SenderWindow | null = null
  private readonly socket: WebSocket
  private readonly frames = new Map<number, Captured>()
  private readonly pingsSent_ns = new Map<number, number>()
  private pings = 0
  private rtt_ns = 0
  private heard_ms = performance.now()
  private timer: number | undefined
  private ended = false

  constructor(
    address: string,
    private readonly hello: Hello,
    private readonly accounting: FrameAccounting,
    private readonly pictures: Pictures,
    private readonly listener: LinkListener,
  ) {
    this.socket = new WebSocket(address)
    this.socket.onopen = () => this.say({ type: 'hello', versions: [1], ...hello })
    this.socket.onmessage = ({ data }: MessageEvent<unknown>) => {
      if (typeof data === 'string') this.receive(data)
    }
    this.socket.onclose = () => {
      this.lose(this.sender ? 'the connection to the box broke' : 'the box does not answer, or is not ready yet')
    }
    this.timer = window.setTimeout(() => this.lose(`the box did not answer for ${WELCOME_TIMEOUT_MS / 1000} s`), WELCOME_TIMEOUT_MS)
  }

  /** What the uplink carries, as far as is known. */
  get bandwidth_bps(): number | null {
    return this.sender?.bandwidth_bps(now_ns()) ?? null
  }

  /** Take the frame that was just captured and is open in the accounting. */
  captured(frame: number, captured_ns: number): void {
    const { sender } = this
    if (!sender) return this.accounting.skip(frame, 'offline', now_ns())
    this.frames.set(frame, { captured_ns, capturedTotal: sender.capturedTotal + 1 })
    this.apply(sender.captured(frame, captured_ns, now_ns(), this.socket.bufferedAmount), frame)
    if (sender.waiting === frame) this.pictures.hold()
  }

  /** Give up what has not been sent yet: nothing more shall be captured. */
  settle(): void {
    this.apply(this.sender?.close() ?? [])
  }

  /** Report once more, take leave and close; the listener hears nothing any more. */
  bye(reason: string): void {
    if (this.ended) return
    this.settle()
    if (this.sender) this.say({ type: 'report', ...this.accounting.report() })
    if (this.socket.readyState === WebSocket.OPEN) this.say({ type: 'bye', reason })
    this.close()
  }

  private lose(why: string): void {
    this.end({ kind: 'lost', why, welcomed: this.sender !== null })
  }

  private end(end: End): void {
    if (this.ended) return
    this.settle()
    this.close()
    this.listener.onEnd(end)
  }

  private close(): void {
    this.ended = true
    window.clearInterval(this.timer)
    this.socket.onclose = null
    this.socket.close()
    this.accounting.lost(now_ns())
  }

  private receive(text: string): void {
    if (this.ended) return
    this.heard_ms = performance.now()
    const heard = parseFromBox(text)
    if (heard) return this.hear(heard, now_ns())
    // An error that is not understood is not answered, or two sides could argue for ever.
    if (!text.includes('"error"')) {
      this.say({ type: 'error', code: 'bad_message', message: `not understood: ${text.slice(0, 80)}`, fatal: false })
    }
  }

  private hear(heard: FromBox, at_ns: number): void {
    if ('advice' in heard) this.obey(heard.advice)
    switch (heard.type) {
      case 'welcome':
        return this.welcomed(heard)
      case 'ping':
        return this.say({ type: 'pong', id: heard.id, camera_ns: now_ns() })
      case 'pong':
        return this.measured(heard.id, at_ns)
      case 'ack':
        this.accounting.acked(heard.frame, heard.accepted, at_ns)
        return this.apply(this.sender?.acknowledged(heard.frame, at_ns, this.rtt_ns, this.socket.bufferedAmount) ?? [])
      case 'result':
        return this.answered(heard, at_ns)
      case 'drop':
        this.frames.delete(heard.frame)
        this.accounting.drop(heard.frame, heard.reason, at_ns)
        return
      case 'advice':
        return this.aim(heard.slo_ms ?? this.hello.slo_ms)
      case 'error':
        if (heard.fatal || !this.sender) return this.end({ kind: 'refused', code: heard.code, message: heard.message })
        return this.listener.onRemark(`The box complains: ${heard.message}`)
      case 'bye':
        return this.lose(heard.reason === 'shutdown' ? 'the box is stopping' : `the box said goodbye${heard.reason ? `: ${heard.reason}` : ''}`)
    }
  }

  private welcomed(welcome: Welcome): void {
    if (this.sender) return
    const { width_px, height_px, rate_hz, slo_ms } = this.hello
    const [slo_ns, lastSlo_ns] = firstAndLast_ns(slo_ms)
    const unacknowledged_max = Math.min(UNACKNOWLEDGED_MAX, welcome.unacknowledged_max)
    this.sender = new SenderWindow({ width_px, height_px, rate_hz, slo_ns, lastSlo_ns, unacknowledged_max })
    this.sender.advised(welcome.advice)
    this.accounting.connected()
    this.aim(welcome.slo_ms ?? slo_ms)
    window.clearTimeout(this.timer)
    this.timer = window.setInterval(() => this.tick(), PERIOD_MS)
    this.ask()
    this.listener.onWelcome(welcome)
  }

  private answered(result: Result, at_ns: number): void {
    const captured_ns = this.frames.get(result.frame)?.captured_ns
    this.frames.delete(result.frame)
    const box_ns = this.accounting.answered(result.frame, at_ns)
    if (box_ns === null || captured_ns === undefined) return
    this.sender?.answered(box_ns + Math.floor(this.rtt_ns / 2))
    this.listener.onResult(result, captured_ns)
  }

  private obey(advice: Advice): void {
    this.advice = advice
    this.sender?.advised(advice)
  }

  /** Take on the deadline in force: the hello's, or one that was set on the box. */
  private aim(deadlines: Deadlines): void {
    this.accounting.deadlines(deadlines)
    this.sender?.deadlines(...firstAndLast_ns(deadlines))
  }

  private apply(decisions: readonly Decision[], live?: number): void {
    for (const decision of decisions) {
      if (decision.kind === 'skip') {
        this.frames.delete(decision.frame)
        this.accounting.skip(decision.frame, decision.reason, now_ns())
        continue
      }
      this.pictures.encode(decision.frame === live ? 'live' : 'held', decision).then(
        (jpeg) => this.handOver(decision, jpeg),
        (error: unknown) => this.lose(`a picture could not be encoded: ${String(error)}`),
      )
    }
  }

  private handOver(send: Send, jpeg: ArrayBuffer): void {
    const captured = this.frames.get(send.frame)
    if (this.ended || !captured) return
    const { width_px, height_px } = this.hello
    const sent_ns = now_ns()
    const message = frameMessage({ frame: send.frame, sent_ns, width_px, height_px, ...captured }, jpeg)
    this.sender?.encoded(send.frame, message.byteLength, send.width_px * send.height_px, sent_ns)
    this.accounting.sent(send.frame)
    this.sent = send
    this.socket.send(message)
  }

  private tick(): void {
    const silent_ms = performance.now() - this.heard_ms
    if (silent_ms > SILENCE_MAX_MS) return this.lose(`nothing was heard of the box for ${Math.round(silent_ms / 1000)} s`)
    this.say({ type: 'report', ...this.accounting.report() })
    this.ask()
  }

  private ask(): void {
    this.pings += 1
    this.pingsSent_ns.set(this.pings, now_ns())
    this.say({ type: 'ping', id: this.pings })
  }

  private measured(id: number, at_ns: number): void {
    const sent_ns = this.pingsSent_ns.get(id)
    if (sent_ns === undefined) return
    this.pingsSent_ns.delete(id)
    const rtt_ns = at_ns - sent_ns
    this.rtt_ns = this.rtt_ns ? Math.min(this.rtt_ns, rtt_ns) : rtt_ns
  }

  private say(message: ToBox): void {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message))
  }
}
