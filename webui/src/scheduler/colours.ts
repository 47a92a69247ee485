// A colour for each variant, the same at every visit. Red and amber stay free for trouble. Pure.

const HUE_FROM = 150
const HUES = 190
/** Steps of the golden ratio lie far apart, however many there are: neighbours in size run side by side. */
const HUE_STEP = 0.618
/** They differ in lightness, too. Between 0.54 and 0.62 neither white nor dark letters have enough contrast. */
const LIGHTNESS = { light: [0.62, 0.74, 0.5], dark: [0.68, 0.82, 0.54] } as const

export interface VariantColour {
  fill: string
  /** What can be read on it. */
  ink: string
}

export function variantColour(variant: string, variants: readonly string[], dark: boolean): VariantColour {
  const at = Math.max(0, variants.indexOf(variant))
  const steps = LIGHTNESS[dark ? 'dark' : 'light']
  const lightness = steps[at % steps.length] as number
  const hue = HUE_FROM + ((at * HUE_STEP) % 1) * HUES
  return {
    fill: `oklch(${lightness} 0.125 ${hue.toFixed(0)})`,
    ink: lightness > 0.58 ? '#101614' : '#ffffff',
  }
}
