import { getNamedTenant } from '../api/session'
import classes from './brand.module.css'
import { useBranding } from './tenant-brand'

/** Returns what the address calls the tenant: nothing where it is an IP address. */
function readHostName(): string | undefined {
  const [first = ''] = location.hostname.split('.')
  return /^[a-z][a-z0-9-]*$/.test(first) && first !== 'localhost' ? first : undefined
}

type BrandProps = { isLarge?: boolean; nameClass?: string }

/** The logo and the name of the tenant; without them a ring in its colour, and what the address calls it. */
export function Brand({ isLarge = false, nameClass = '' }: BrandProps) {
  const { name, logo } = useBranding()
  return (
    <div className={`${classes.brand} ${isLarge ? classes.large : ''}`}>
      {logo ? <img className={classes.logo} src={logo} alt="" /> : <span className={classes.mark} aria-hidden />}
      <span className={`${classes.name} ${nameClass}`}>{name ?? getNamedTenant() ?? readHostName() ?? 'Atoll'}</span>
    </div>
  )
}
