-- Cancel a reservation: rules._cancel.

local reservation = named_reservation()
if not is_open(reservation) then return finish({'refused', 'RESERVATION_OVER'}) end
end_reservation(request.reservation_id, reservation)
return finish({'released', reservation.information, reservation.calls, reservation.unit_id}, nil, now)
