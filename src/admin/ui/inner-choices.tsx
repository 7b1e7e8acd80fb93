import { MantineThemeProvider } from '@mantine/core'
import type { ReactNode } from 'react'

const defaultProps = { comboboxProps: { withinPortal: false } }
const theme = { components: { Select: { defaultProps }, MultiSelect: { defaultProps }, TagsInput: { defaultProps } } }

/** Lets the choices in a floating box open inside of it; else choosing would be a click outside, which closes the box. */
export const InnerChoices = ({ children }: { children: ReactNode }) => (
  <MantineThemeProvider theme={theme} inherit>
    {children}
  </MantineThemeProvider>
)
