// Decides how many bits per second the uplink carries, and what this camera's pictures weigh.
//
// The same rules as edgebox/link/bandwidth.py, which says where they come from and why; a test compares the
// two. Pure: instants, in ns of one clock, come in as arguments.

const WINDOW_NS = 1e9
const STALE_NS = 10e9
/** At a low rate the window reaches back to this many samples, as long as they are not stale. */
const SAMPLES_MIN = 3
/** How late a thread or a loop wakes up on a busy machine, now and then. */
const NOISE_NS = 3e6
/** The shortest transmission believed. */
const BUSY_MIN_NS = 1e5
/** What of a message its pixels do not explain. */
const OVERHEAD_BYTES = 660
const REFERENCE_PX = 256 * 256
const SIZE_EXPONENT = 0.14
const WEIGHT_QUANTILE = 0.9
const WEIGHTS_KEPT = 60

interface Sample {
  arrival_ns: number
  bits: number
  busy_ns: number
}

/** The throughput of the uplink, from the frames it carried. */
export class BandwidthEstimate {
  private samples: Sample[] = []
  private base_ns = 0

  /** Learn from a frame that is acknowledged; `base_ns` is what even an empty message takes there and back. */
  add(size_bytes: number, sent_ns: number, arrival_ns: number, base_ns: number): void {
    this.base_ns = base_ns
    const before = this.samples.at(-1)
    const own_ns = arrival_ns - base_ns - sent_ns
    // A frame sent before its predecessor was through had to wait for it.
    const busy_ns = before ? Math.min(own_ns, arrival_ns - before.arrival_ns) : own_ns
    this.samples.push({ arrival_ns, bits: size_bytes * 8, busy_ns: Math.max(busy_ns, BUSY_MIN_NS) })
    this.samples = this.samples.filter((sample) => sample.arrival_ns > arrival_ns - STALE_NS)
  }

  /**
   * The estimate, null when nothing is known (any more). `waiting_bytes` is the size of the oldest frame on its
   * way (0: none), `waitingSince_ns` when it had the link to itself. A question changes nothing.
   */
  bps(now_ns: number, waiting_bytes = 0, waitingSince_ns = 0): number | null {
    const known = this.samples.filter(({ arrival_ns }) => arrival_ns > now_ns - STALE_NS)
    const last = known.at(-1)
    if (!last) return null
    const inWindow = known.filter(({ arrival_ns }) => arrival_ns > now_ns - WINDOW_NS)
    const recent = inWindow.length < SAMPLES_MIN ? known.slice(-SAMPLES_MIN) : inWindow
    const mean = sum(recent.map(({ bits }) => bits)) / sum(recent.map(({ busy_ns }) => busy_ns))
    let bitsPerNs = Math.min(mean, last.bits / forgiven(last.busy_ns))
    if (waiting_bytes) {
      const waited_ns = now_ns - waitingSince_ns - this.base_ns
      bitsPerNs = Math.min(bitsPerNs, (waiting_bytes * 8) / forgiven(waited_ns))
    }
    return bitsPerNs * 1e9
  }
}

/** A high quantile of what one camera's JPEG pictures weigh, at any size. */
export class BytesPerPixel {
  private readonly recent: number[] = []

  /** Learn from one frame's whole message. */
  add(size_bytes: number, pixels: number): void {
    this.recent.push(Math.max(1, size_bytes - OVERHEAD_BYTES) / referenceEquivalent(pixels))
    if (this.recent.length > WEIGHTS_KEPT) this.recent.shift()
  }

  /** Bytes per pixel of a picture of the reference size; null before the first. */
  value(): number | null {
    return quantile(this.recent, WEIGHT_QUANTILE)
  }
}

/** What the message with a picture of a size weighs, `bytesPerPixel` as `BytesPerPixel` gives it. */
export function messageBytes(bytesPerPixel: number, pixels: number): number {
  return OVERHEAD_BYTES + bytesPerPixel * referenceEquivalent(pixels)
}

/** The value below which this share of all lies, null of none. */
export function quantile(values: readonly number[], share: number): number | null {
  const ordered = [...values].sort((a, b) => a - b)
  return ordered[Math.min(Math.trunc(share * ordered.length), ordered.length - 1)] ?? null
}

/** The pixels that would weigh as much if each weighed as at the reference size. */
function referenceEquivalent(pixels: number): number {
  return pixels * (pixels / REFERENCE_PX) ** -SIZE_EXPONENT
}

function forgiven(busy_ns: number): number {
  return Math.max(busy_ns - NOISE_NS, BUSY_MIN_NS)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
