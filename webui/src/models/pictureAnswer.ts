// What the box answers to a single picture, in its own format. Pure.

export interface PictureDetection {
  label: string
  score: number
  /** Corners, in pixels of the picture. */
  box: readonly [number, number, number, number]
}

export interface PictureAnswer {
  width_px: number
  height_px: number
  variant: string
  timing_ms: { inference: number; total: number }
  detections: readonly PictureDetection[]
}
