// Reads JSON that others wrote: what is no JSON, or no object, is null. Pure.

export type Fields = Record<string, unknown>

/** The object that a text holds. */
export function objectOf(text: string): Fields | null {
  const value = parsed(text)
  return typeof value === 'object' && value !== null ? (value as Fields) : null
}

/** The value that a text holds. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
