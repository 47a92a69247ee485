// Owns the way from Start to Stop: the device, its video, the camera at the box, the screen kept awake.
//
// Ends by itself, and says why, when the page is hidden or closed (a phone would give black pictures), when the
// device is taken away, or when the box refuses the camera for good.

import { request } from '../api/api'
import { webSocketAddress } from '../api/webSocketAddress'
import { BrowserCamera, OTHER_NAME, UNPAIRED, type Status } from './browserCamera'
import { explain, isMirror, openCamera, type CameraError } from './device'
import type { Overlay } from './overlay'
import { settingsOf, type Chosen } from './settings'
import { VideoPictures } from './videoPictures'
import { now_ns, to_ns } from './wire'

/** A capture time older than this is of another clock. */
const CAPTURE_AGE_MAX_NS = 1e9

export type CaptureState = 'stopped' | 'opening' | 'running' | 'stopping'

export class CaptureController {
  state: CaptureState = 'stopped'
  error: CameraError | null = null
  /** Why it stopped, if not by the button. */
  note = ''
  mirrored = false
  /** The box refused it for what a pairing code mends. */
  needsCode = false
  private camera: BrowserCamera | null = null
  private pictures: VideoPictures | null = null
  private stream: MediaStream | null = null
  private wakeLock: WakeLockSentinel | null = null
  private callback = 0
  private disposed = false

  constructor(
    private readonly video: HTMLVideoElement,
    private readonly overlay: Overlay,
    private readonly onChange: () => void,
  ) {
    document.addEventListener('visibilitychange', this.hidden)
    window.addEventListener('pagehide', this.hidden)
    window.addEventListener('online', this.retryNow)
  }

  dispose(): void {
    this.disposed = true
    document.removeEventListener('visibilitychange', this.hidden)
    window.removeEventListener('pagehide', this.hidden)
    window.removeEventListener('online', this.retryNow)
    this.halt('the page was closed', '')
  }

  /** How the camera does, or did; null before the first start. */
  status(): Status | null {
    return this.camera?.status() ?? null
  }

  /** A network that returns, or a person, should not wait out a long delay. */
  readonly retryNow = (): void => this.camera?.retryNow()

  async start(chosen: Chosen): Promise<void> {
    if (this.state !== 'stopped') return
    this.error = null
    this.note = ''
    this.needsCode = false
    this.change('opening')
    let stream: MediaStream | null = null
    try {
      stream = await openCamera(chosen.device, chosen.rate_hz)
      // The page may have been hidden while the person was asked.
      if (document.hidden || this.disposed) {
        stopTracks(stream)
        return this.change('stopped')
      }
      this.stream = stream
      this.mirrored = isMirror(stream, chosen.device)
      stream.getVideoTracks()[0]?.addEventListener('ended', () => this.halt('the camera was taken away', 'The camera was taken away.'))
      this.video.srcObject = stream
      await this.video.play()
    } catch (error) {
      if (this.stream !== stream) return // it was halted meanwhile, and says why
      this.error = explain(error)
      return this.release()
    }
    if (this.stream === stream) this.join(chosen)
  }

  /** Stop in order: the last answers are waited for. */
  async stop(): Promise<void> {
    if (this.state !== 'running') return
    this.change('stopping')
    await this.camera?.finish('it was stopped')
    this.release()
  }

  private join(chosen: Chosen): void {
    this.pictures = new VideoPictures(this.video)
    this.overlay.mirrored = this.mirrored
    const camera = new BrowserCamera(webSocketAddress(document.baseURI, 'v1/stream'), settingsOf(chosen), this.size(), this.pictures, {
      onChange: this.onChange,
      onResult: (result, captured_ns) => this.overlay.show(result, captured_ns, this.size()),
      onRefused: (message, code) => {
        this.needsCode = code === UNPAIRED || code === OTHER_NAME
        this.halt('', `The box refuses this camera: ${message}.`)
      },
      mayConnect: async () => (await request('GET /v1/session')).may_be_camera,
    })
    this.camera = camera
    this.change('running')
    camera.start()
    this.nextFrame()
    void this.keepAwake()
  }

  private size(): { width: number; height: number } {
    return { width: this.video.videoWidth, height: this.video.videoHeight }
  }

  private nextFrame(): void {
    this.callback = this.video.requestVideoFrameCallback((_now, frame) => {
      if (this.state !== 'running') return
      this.nextFrame()
      this.camera?.resized(this.size())
      this.camera?.captured(capturedAt_ns(frame))
    })
  }

  private readonly hidden = (event: Event): void => {
    if (event.type !== 'pagehide' && !document.hidden) return
    this.halt('its page was hidden', 'Stopped, because this page was hidden: browsers give a hidden page no pictures.')
  }

  /** Stop at once, and say why. */
  private halt(reason: string, note: string): void {
    // While the person is asked for the camera there is nothing to stop: a page may be hidden for the question.
    if (this.state === 'stopped' || !this.stream) return
    this.camera?.leave(reason)
    this.note = note
    this.release()
  }

  private release(): void {
    this.video.cancelVideoFrameCallback(this.callback)
    this.pictures?.dispose()
    this.pictures = null
    if (this.stream) stopTracks(this.stream)
    this.stream = null
    this.video.srcObject = null
    this.overlay.clear()
    void this.wakeLock?.release().catch(() => {})
    this.wakeLock = null
    this.change('stopped')
  }

  /** Without it a phone dims, locks and hides the page; where it cannot be had, the person touches the screen. */
  private async keepAwake(): Promise<void> {
    try {
      const lock = await navigator.wakeLock.request('screen')
      if (this.state === 'running') this.wakeLock = lock
      else await lock.release()
    } catch {
      // Low battery, or a browser that has none.
    }
  }

  private change(state: CaptureState): void {
    this.state = state
    this.onChange()
  }
}

/** The instant of capture, as exactly as this browser tells. */
function capturedAt_ns(frame: VideoFrameCallbackMetadata): number {
  const now = now_ns()
  const told = to_ns(frame.captureTime ?? frame.presentationTime)
  return told > now - CAPTURE_AGE_MAX_NS ? Math.min(told, now) : now
}

function stopTracks(stream: MediaStream): void {
  for (const track of stream.getTracks()) track.stop()
}
