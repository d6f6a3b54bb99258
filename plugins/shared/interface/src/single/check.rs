//! CHECK: what ADD promised, and nothing else.

use skel::Request;

use super::Single;
use crate::error::Error;
use crate::verify;
use crate::world::World;

pub fn check<S: Single>(request: &Request<S::Config>) -> Result<(), S::Error> {
    if let Some(ipam) = &request.ipam {
        ipam.check().map_err(Error::from)?;
    }
    let result = request.prev_result.as_ref().ok_or(Error::NoPrevResult)?;
    let world = World::open(&request.netns)?;
    let ifname = request.ifname.as_str();
    let link = verify::link(&world.container, &request.netns, ifname, S::KIND, result)?;
    verify::is_up(&link)?;
    S::verify(request, &world, &link)?;
    verify::addresses(&world.container, result, &link)?;
    verify::routes(&world.container, result, &link)?;
    Ok(())
}
