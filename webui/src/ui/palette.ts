// The style sheets' colours for canvases, which cannot name them, and word of their change.

import { THEME_CHANGED } from './theme'

/** Dark in every theme: for what must be read on bright colours. */
export const DARK_INK = '#10161a'

/** A CSS colour, such as `var(--ink)`, as it is where this element stands, in the theme of this moment. */
export function resolvedColour(element: HTMLElement, colour: string): string {
  const before = element.style.color
  element.style.color = colour
  const resolved = getComputedStyle(element).color
  element.style.color = before
  return resolved
}

export function isDark(element: Element): boolean {
  const scheme = getComputedStyle(element).colorScheme
  return scheme === 'dark' || (scheme !== 'light' && window.matchMedia('(prefers-color-scheme: dark)').matches)
}

/** Call this whenever colours have changed, by the system or by a person, until the returned function is called. */
export function onColoursChanged(changed: () => void): () => void {
  const scheme = window.matchMedia('(prefers-color-scheme: dark)')
  scheme.addEventListener('change', changed)
  window.addEventListener(THEME_CHANGED, changed)
  return () => {
    scheme.removeEventListener('change', changed)
    window.removeEventListener(THEME_CHANGED, changed)
  }
}
