// An address as a QR code, dark on light in every theme: readers want it so.

import styles from './QrCode.module.css'

import { encode } from 'uqr'

import { DARK_INK } from './palette'

/** What the standard wants to be free around it. */
const QUIET = 4

export function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { ecc: 'M', border: QUIET })
  const path = data
    .flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : '')))
    .join('')
  return (
    <svg class={styles.qr} viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges" data-testid="qr" data-text={text}>
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill={DARK_INK} />
    </svg>
  )
}
