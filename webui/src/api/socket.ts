// The page's connection to the box: one WebSocket that comes back by itself.

import type { FrameSubscription } from '../live/frameDispatcher'
import { parseFrame, parseMessage, type ShownFrame } from './messages'
import { reconnectDelayMs, SILENT_MS } from './reconnect'
import type { TimelineUpdate } from '../scheduler/timeline'
import type { BoxState, Watch } from './types'

export type Connection =
  | { phase: 'connecting' }
  | { phase: 'live' }
  /** `since_ms` and `retry_at_ms` are instants of Date.now(); `retry_at_ms` is null while a try is on. */
  | { phase: 'lost'; since_ms: number; retry_at_ms: number | null }

export interface Listener {
  onConnection(connection: Connection): void
  onState(state: BoxState): void
  onFrame(frame: ShownFrame): void
  onTimeline(update: TimelineUpdate): void
  /** The box sent what this page does not understand; its version, if that can be read. */
  onUnreadable(why: string, version: string | null): void
}

/** Frames a second of each camera while nobody looks at the page: enough to have a picture on return. */
const UNSEEN_HZ = 1
/** Frames a second of the one camera that is looked at closely: all that most send. */
const CLOSE_HZ = 15

export class BoxSocket {
  private socket: WebSocket | null = null
  private attempt = 0
  private retryTimer: number | undefined
  private silenceTimer: number | undefined
  private lostSince_ms: number | null = null
  private timeline = false
  private frames: FrameSubscription = { cameras: [], close: false }
  /** The last subscription that this connection was told of. */
  private subscribed = ''

  constructor(
    private readonly address: string,
    private readonly listener: Listener,
  ) {}

  start(): void {
    this.listener.onConnection({ phase: 'connecting' })
    // A network that returns, or a viewer who does, should not wait out a long delay.
    window.addEventListener('online', () => this.retryNow())
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.retryNow()
      this.watch()
    })
    this.connect()
  }

  /** Try at once if the socket is lost and waiting; otherwise do nothing. */
  retryNow(): void {
    if (this.retryTimer === undefined) return
    window.clearTimeout(this.retryTimer)
    this.connect()
  }

  /** Ask for the timeline, or for no more of it. */
  watchTimeline(wanted: boolean): void {
    this.timeline = wanted
    this.watch()
  }

  /** Ask for these cameras' frames only. */
  watchFrames(wanted: FrameSubscription): void {
    this.frames = wanted
    this.watch()
  }

  private connect(): void {
    this.retryTimer = undefined
    if (this.lostSince_ms !== null) {
      this.listener.onConnection({ phase: 'lost', since_ms: this.lostSince_ms, retry_at_ms: null })
    }
    const socket = new WebSocket(this.address)
    socket.binaryType = 'arraybuffer'
    this.socket = socket
    // A connection that hangs half open, while opening or later, reports nothing by itself.
    this.expectMessage(socket)
    this.subscribed = ''
    socket.onopen = () => this.watch()
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => this.receive(socket, event.data)
    socket.onclose = () => this.lost(socket)
  }

  /** A forgotten tab should not cost the box what a watched one does. */
  private watch(): void {
    if (this.socket?.readyState !== WebSocket.OPEN) return
    const { cameras, close } = this.frames
    const wanted: Watch = { type: 'watch', cameras }
    if (document.hidden) wanted.max_hz = UNSEEN_HZ
    else if (close) wanted.max_hz = CLOSE_HZ
    if (this.timeline && !document.hidden) wanted.timeline = true
    const subscription = JSON.stringify(wanted)
    // The box begins the timeline again each time it is asked for.
    if (subscription === this.subscribed) return
    this.subscribed = subscription
    this.socket.send(subscription)
  }

  private expectMessage(socket: WebSocket): void {
    window.clearTimeout(this.silenceTimer)
    this.silenceTimer = window.setTimeout(() => {
      socket.close()
      this.lost(socket)
    }, SILENT_MS)
  }

  private receive(socket: WebSocket, data: string | ArrayBuffer): void {
    if (socket !== this.socket) return
    this.expectMessage(socket)
    if (typeof data !== 'string') {
      const frame = parseFrame(data)
      if (frame) this.listener.onFrame(frame)
      return
    }
    const message = parseMessage(data)
    if (message?.kind === 'timeline') this.listener.onTimeline(message.update)
    if (message?.kind === 'unreadable') this.listener.onUnreadable(message.why, message.version)
    if (message?.kind !== 'state') return
    // Only a state proves that the box is back: a proxy may accept sockets for a box that is down.
    this.attempt = 0
    this.lostSince_ms = null
    this.listener.onConnection({ phase: 'live' })
    this.listener.onState(message.state)
  }

  private lost(socket: WebSocket): void {
    if (socket !== this.socket) return
    this.socket = null
    window.clearTimeout(this.silenceTimer)
    this.lostSince_ms ??= Date.now()
    const delay_ms = reconnectDelayMs(this.attempt, Math.random())
    this.attempt += 1
    this.retryTimer = window.setTimeout(() => this.connect(), delay_ms)
    this.listener.onConnection({
      phase: 'lost',
      since_ms: this.lostSince_ms,
      retry_at_ms: Date.now() + delay_ms,
    })
  }
}
