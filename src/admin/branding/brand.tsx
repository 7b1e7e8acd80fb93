import classes from './brand.module.css'
import { useBranding, useProductName } from './tenant-brand'

type BrandProps = { isLarge?: boolean; nameClass?: string }

/** The logo and the name of the tenant; without them a ring in its colour, and what the address calls it. */
export function Brand({ isLarge = false, nameClass = '' }: BrandProps) {
  const { logo } = useBranding()
  const name = useProductName()
  return (
    <div className={`${classes.brand} ${isLarge ? classes.large : ''}`}>
      {logo ? <img className={classes.logo} src={logo} alt="" /> : <span className={classes.mark} aria-hidden />}
      <span className={`${classes.name} ${nameClass}`}>{name}</span>
    </div>
  )
}
