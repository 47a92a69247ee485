// Small signs, drawn in the colour of the text around them. All are decoration beside a word.

import type { ComponentChildren } from 'preact'

import type { Health } from '../figures/health'

function Icon({ children }: { children: ComponentChildren }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      {children}
    </svg>
  )
}

const LINE = {
  fill: 'none',
  stroke: 'currentColor',
  'stroke-width': '1.7',
  'stroke-linecap': 'round',
  'stroke-linejoin': 'round',
} as const

/** The four corners of a viewfinder around a point. */
export function Logo() {
  return (
    <svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" focusable="false">
      <rect width="24" height="24" rx="5.5" fill="var(--accent)" />
      <g fill="none" stroke="var(--surface)" stroke-width="1.8" stroke-linecap="round">
        <path d="M6 9V7.5A1.5 1.5 0 0 1 7.5 6H9M15 6h1.5A1.5 1.5 0 0 1 18 7.5V9" />
        <path d="M18 15v1.5a1.5 1.5 0 0 1-1.5 1.5H15M9 18H7.5A1.5 1.5 0 0 1 6 16.5V15" />
      </g>
      <circle cx="12" cy="12" r="2.4" fill="var(--surface)" />
    </svg>
  )
}

/** One shape per health, so that the colour is never the only cue. */
export function HealthIcon({ health }: { health: Health }) {
  switch (health) {
    case 'good':
      return <Icon><circle cx="8" cy="8" r="6.5" {...LINE} /><path d="M5.2 8.2l2 2 3.6-4.2" {...LINE} /></Icon>
    case 'reduced':
      return <Icon><circle cx="8" cy="8" r="6.5" {...LINE} /><path d="M8 4.8v6M5.4 8.4L8 11l2.6-2.6" {...LINE} /></Icon>
    case 'strained':
      return <Icon><path d="M8 2L14.5 13.5H1.5Z" {...LINE} /><path d="M8 6.5v3M8 11.4v.1" {...LINE} /></Icon>
    case 'failing':
      return <Icon><path d="M5.3 1.5h5.4l3.8 3.8v5.4l-3.8 3.8H5.3L1.5 10.7V5.3Z" {...LINE} /><path d="M6 6l4 4M10 6l-4 4" {...LINE} /></Icon>
    case 'lost':
      return <Icon><path d="M1.5 5h8.5v6.5H1.5ZM10 7.5l4-2v5.5l-4-2M2 14L14 2" {...LINE} /></Icon>
    case 'waiting':
      return <Icon><circle cx="8" cy="8" r="6.5" {...LINE} stroke-dasharray="2 2.6" /></Icon>
    case 'gone':
      return <Icon><circle cx="8" cy="8" r="6.5" {...LINE} /><path d="M3.5 12.5l9-9" {...LINE} /></Icon>
  }
}

export function CheckIcon() {
  return <Icon><path d="M3.5 8.5l3 3 6-7" {...LINE} /></Icon>
}

export function CrossIcon() {
  return <Icon><path d="M4 4l8 8M12 4l-8 8" {...LINE} /></Icon>
}

export function EnlargeIcon() {
  return <Icon><path d="M9.5 2.5h4v4M6.5 13.5h-4v-4M13.5 2.5l-4.5 4.5M2.5 13.5l4.5-4.5" {...LINE} /></Icon>
}

export function ShrinkIcon() {
  return <Icon><path d="M13 7H9V3M3 9h4v4M9 7l4.5-4.5M7 9l-4.5 4.5" {...LINE} /></Icon>
}

export function PauseIcon() {
  return (
    <Icon>
      <path d="M4.5 3h2.6v10H4.5zM8.9 3h2.6v10H8.9z" fill="currentColor" />
    </Icon>
  )
}

export function PlayIcon() {
  return (
    <Icon>
      <path d="M4.8 2.9v10.2L13 8z" fill="currentColor" />
    </Icon>
  )
}

export function DownloadIcon() {
  return (
    <Icon>
      <path {...LINE} d="M8 2.5v7.5M4.8 7.2 8 10.4l3.2-3.2M3 13.2h10" />
    </Icon>
  )
}
