// The picture as a sheet to draw on: points by clicks, or by a crosshair that the arrow keys move.

import styles from './DrawingOverlay.module.css'

import { useEffect, useRef, useState } from 'preact/hooks'

import type { Camera } from '../api/types'
import { svgPoints, type Point } from '../live/zones'
import { type Kind, moved, pointsText, POINTS_MIN, shareOf, withPoint } from './drawing'
import { type Drawing, NAME_ID } from './ZoneEditor'

/** The way from the picture to the form, which may be far below it. */
export function DrawnSoFar({ kind, points }: { kind: Kind; points: readonly Point[] }) {
  return (
    <>
      {pointsText(kind, points)}
      <button type="button" disabled={points.length < POINTS_MIN[kind]} onClick={() => document.getElementById(NAME_ID)?.focus()}>Give the {kind} a name</button>
    </>
  )
}

export function DrawingOverlay({ camera, drawing }: { camera: Camera; drawing: Drawing }) {
  const { kind, points, set } = drawing
  const [crosshair, setCrosshair] = useState<Point>([0.5, 0.5])
  const sheet = useRef<HTMLButtonElement>(null)
  // Keys go to the picture as soon as something is being drawn.
  useEffect(() => sheet.current?.focus(), [])
  if (kind === null) return null
  const { width_px: width, height_px: height } = camera
  const add = (point: Point) => set(kind, withPoint(kind, points, point))

  const click = (event: MouseEvent) => {
    // A key that presses the button is no click of a mouse: it has set its point already.
    if (event.detail === 0 || !sheet.current) return
    const frame = sheet.current.getBoundingClientRect()
    add(shareOf({ x: event.clientX - frame.left, y: event.clientY - frame.top }, frame, { width, height }))
  }
  const press = (event: KeyboardEvent) => {
    const next = moved(crosshair, event.key)
    if (next) setCrosshair(next)
    else if (event.key === 'Enter' || event.key === ' ') add(crosshair)
    else if (event.key === 'Backspace') set(kind, points.slice(0, -1))
    else if (event.key === 'Escape') set(null, [])
    else return
    event.preventDefault()
  }
  const [x, y] = [crosshair[0] * width, crosshair[1] * height]
  return (
    <button ref={sheet} type="button" class={styles.sheet} onClick={click} onKeyDown={press} data-testid="sheet"
      aria-label={`Draw a ${kind}: ${points.length} points; crosshair at ${Math.round(crosshair[0] * 100)} %, ${Math.round(crosshair[1] * 100)} %`}>
      <svg viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        {kind === 'zone' ? <polygon points={svgPoints(points, width, height)} /> : <polyline points={svgPoints(points, width, height)} />}
        {points.map((point) => <circle key={point.join()} cx={point[0] * width} cy={point[1] * height} r={width / 160} />)}
        <path d={`M${x - width / 40} ${y}H${x + width / 40}M${x} ${y - width / 40}V${y + width / 40}`} />
      </svg>
    </button>
  )
}
