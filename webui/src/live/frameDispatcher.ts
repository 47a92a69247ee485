// Which canvas shows which camera, and which of them are in view. Frames go straight to their canvas, past the
// component tree: they come ten times as often as states. Those of cameras out of view are not even asked for.

import type { ShownFrame } from '../api/messages'
import { Painter } from './painter'

/** Whose frames are wanted. */
export interface FrameSubscription {
  cameras: readonly string[]
  /** Whether one camera is looked at closely, with all the frames it sends. */
  close: boolean
}

/** Canvases this close to the window are as good as in view: who scrolls shall find a picture. */
const NEAR = '100px'

export class FrameDispatcher {
  private readonly painters = new Map<string, Painter>()
  private readonly cameras = new Map<Element, string>()
  private readonly inView: IntersectionObserver
  private follower: { camera: string; take: (frame: ShownFrame) => void } | null = null
  private isDue = false

  /** `subscribe` asks the box for these cameras' frames only. */
  constructor(private readonly subscribe: (wanted: FrameSubscription) => void) {
    this.inView = new IntersectionObserver((entries) => this.moved(entries), { rootMargin: NEAR })
    document.addEventListener('visibilitychange', () => {
      for (const painter of this.painters.values()) void painter.pump()
    })
  }

  /** Show a camera's frames on this canvas until the returned function is called. */
  attach(camera: string, canvas: HTMLCanvasElement, caption: HTMLElement): () => void {
    const painter = new Painter(canvas, caption)
    this.painters.set(camera, painter)
    this.cameras.set(canvas, camera)
    this.inView.observe(canvas)
    return () => {
      this.inView.unobserve(canvas)
      this.cameras.delete(canvas)
      painter.dispose()
      if (this.painters.get(camera) === painter) this.painters.delete(camera)
      this.changed()
    }
  }

  /** Look at one camera closely: `take` gets each of its frames, until the returned function is called. */
  follow(camera: string, take: (frame: ShownFrame) => void): () => void {
    const follower = { camera, take }
    this.follower = follower
    this.changed()
    return () => {
      if (this.follower !== follower) return
      this.follower = null
      this.changed()
    }
  }

  /** Draw a frame, or let it go if its camera has no canvas (any more). */
  show(frame: ShownFrame): void {
    const { camera } = frame.header
    this.painters.get(camera)?.push(frame)
    if (this.follower?.camera === camera) this.follower.take(frame)
  }

  private moved(entries: readonly IntersectionObserverEntry[]): void {
    for (const { target, isIntersecting } of entries) {
      const camera = this.cameras.get(target)
      const painter = camera === undefined ? undefined : this.painters.get(camera)
      if (painter) painter.inView = isIntersecting
    }
    this.changed()
  }

  /** Say whose frames are wanted, once for all that changes at a time. */
  private changed(): void {
    if (this.isDue) return
    this.isDue = true
    queueMicrotask(() => {
      this.isDue = false
      this.subscribe(this.wanted())
    })
  }

  private wanted(): FrameSubscription {
    if (this.follower) return { cameras: [this.follower.camera], close: true }
    const inView = [...this.painters].filter(([, painter]) => painter.inView).map(([camera]) => camera)
    return { cameras: inView.sort(), close: false }
  }
}
