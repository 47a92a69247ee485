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

/** How many there are of each label, the most frequent first. */
export function countsOf(detections: readonly PictureDetection[]): { label: string; count: number }[] {
  const counts = new Map<string, number>()
  for (const { label } of detections) counts.set(label, (counts.get(label) ?? 0) + 1)
  return [...counts].map(([label, count]) => ({ label, count })).sort((a, b) => b.count - a.count || a.label.localeCompare(b.label))
}
