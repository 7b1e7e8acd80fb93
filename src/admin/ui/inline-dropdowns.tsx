import { MantineThemeProvider } from '@mantine/core'
import type { ReactNode } from 'react'

const defaultProps = { comboboxProps: { withinPortal: false } }
const theme = { components: { Select: { defaultProps }, MultiSelect: { defaultProps }, TagsInput: { defaultProps } } }

/** Opens the dropdowns of inputs inside of a popover; in a portal, choosing would be a click outside, which closes it. */
export const InlineDropdowns = ({ children }: { children: ReactNode }) => (
  <MantineThemeProvider theme={theme} inherit>
    {children}
  </MantineThemeProvider>
)
