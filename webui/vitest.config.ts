import { defineConfig } from 'vitest/config'

export default defineConfig({
  // Tests read the style sheets' modules as they are, with the names of their classes as written.
  test: { css: { include: /\.module\.css/, modules: { classNameStrategy: 'non-scoped' } } },
})
