// Zones and lines over a camera's live picture, with what is counted in them.

import styles from './Zones.module.css'

import type { Camera } from '../api/types'
import { crossingsInWords, inWords, svgPoints, type Tracking } from './zones'

/** What is drawn lies where the canvas shows the picture: both fit it in whole, in the middle. */
export function Zones({ camera }: { camera: Camera }) {
  const { tracking, width_px: width, height_px: height } = camera
  if (!tracking) return null
  return (
    <svg class={styles.zones} viewBox={`0 0 ${width} ${height}`} aria-hidden="true" data-testid="zones">
      <Shapes tracking={tracking} width={width} height={height} />
    </svg>
  )
}

function Shapes({ tracking, width, height }: { tracking: Tracking; width: number; height: number }) {
  const size = width / 42
  return (
    <>
      {tracking.zones.map(({ name, points, counts }) => (
        <g key={`zone-${name}`}>
          <polygon class={styles.zone} points={svgPoints(points, width, height)} />
          <text class={styles.name} font-size={size} x={(points[0]?.[0] ?? 0) * width + size / 3} y={(points[0]?.[1] ?? 0) * height + size}>{name}: {inWords(counts)}</text>
        </g>
      ))}
      {tracking.lines.map(({ name, points, ...counted }) => (
        <g key={`line-${name}`}>
          <polyline class={styles.line} points={svgPoints(points, width, height)} />
          <text class={styles.name} font-size={size} x={(points[0]?.[0] ?? 0) * width + size / 3} y={(points[0]?.[1] ?? 0) * height - size / 2}>{name}: {crossingsInWords(counted)}</text>
        </g>
      ))}
    </>
  )
}
