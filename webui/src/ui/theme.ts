// Light, dark, or as the system says.

export const THEMES = ['auto', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const KEY = 'edgebox.theme'

export function isTheme(value: unknown): value is Theme {
  return THEMES.includes(value as Theme)
}

export function nextTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] as Theme
}

/** The theme this browser remembers. Storage may be forbidden; then every visit starts with auto. */
export function savedTheme(): Theme {
  try {
    const value = localStorage.getItem(KEY)
    return isTheme(value) ? value : 'auto'
  } catch {
    return 'auto'
  }
}

/** Use a theme from now on, and tell what draws its colours itself. */
export function applyTheme(theme: Theme): void {
  document.documentElement.dataset['theme'] = theme
  try {
    localStorage.setItem(KEY, theme)
  } catch {
    // It still holds until the page is closed.
  }
  window.dispatchEvent(new Event(THEME_CHANGED))
}

export const THEME_CHANGED = 'edgebox:theme'
