import { createTheme, type MantineColorsTuple, type MantineThemeOverride, rem } from '@mantine/core'
import { ACCENT_SHADES, toShades } from './branding/accent-color'

const TEAL: MantineColorsTuple = [
  '#e9f7f7',
  '#d3eded',
  '#a5dcdb',
  '#74c9c8',
  '#4cb8b7',
  '#2fa5a4',
  '#178a8a',
  '#0b7272',
  '#065b5c',
  '#044647',
]

/** The greys of inputs and menus in the dark look, with the tint of its surfaces. */
const DARK: MantineColorsTuple = [
  '#c7cfcf',
  '#b4bebe',
  '#7f8b8b',
  '#667272',
  '#404949',
  '#384141',
  '#2a3232',
  '#1f2626',
  '#1a2020',
  '#121717',
]

const CLOSE_BUTTON = { 'aria-label': 'Close' }

const theme = createTheme({
  primaryColor: 'teal',
  primaryShade: { light: 7, dark: 7 },
  colors: { teal: TEAL, dark: DARK },
  autoContrast: true,
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  fontSizes: { xs: rem(12), sm: rem(13), md: rem(14), lg: rem(16), xl: rem(20) },
  defaultRadius: rem(6),
  respectReducedMotion: true,
  cursorType: 'pointer',
  headings: {
    fontWeight: '600',
    sizes: { h1: { fontSize: rem(18) }, h2: { fontSize: rem(16) }, h3: { fontSize: rem(14) } },
  },
  components: {
    Button: { defaultProps: { size: 'xs' } },
    TextInput: { defaultProps: { size: 'sm' } },
    Tooltip: { defaultProps: { openDelay: 400, transitionProps: { duration: 100 } } },
    Menu: { defaultProps: { shadow: 'md', transitionProps: { duration: 100 } } },
    Modal: { defaultProps: { transitionProps: { duration: 120 }, centered: true, closeButtonProps: CLOSE_BUTTON } },
    Notification: { defaultProps: { closeButtonProps: { 'aria-label': 'Close the message' } } },
    Drawer: { defaultProps: { transitionProps: { duration: 120 }, closeButtonProps: CLOSE_BUTTON } },
  },
})

/** Returns the look of the page: system fonts, a 4 px grid, one accent colour, and shadows only on what floats. */
export const createPageTheme = (accentColor?: string): MantineThemeOverride =>
  accentColor
    ? {
        ...theme,
        primaryColor: 'accent',
        primaryShade: ACCENT_SHADES,
        colors: { accent: toShades(accentColor), dark: DARK },
      }
    : theme
