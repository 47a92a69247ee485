// Reads JSON that others wrote: what is no JSON, or no object, is null. Pure.

export type Fields = Record<string, unknown>

/** The object that a text holds. */
export function objectOf(text: string): Fields | null {
  const value = valueOf(text)
  return typeof value === 'object' && value !== null ? (value as Fields) : null
}

/** The value that a text holds. */
export function valueOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
